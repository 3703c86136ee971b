/* What a run changes in the kernel. */
#ifndef FFUZZ_SNAPSHOT_CHANGES_H
#define FFUZZ_SNAPSHOT_CHANGES_H

#include "snapshot/state.h"

#if FFUZZ_HAS_SNAPSHOTS
HIDDEN void ffuzz_changes_start(void); /* notes how things are, refuses what cannot be undone */
HIDDEN void ffuzz_changes_undo(void);
HIDDEN void ffuzz_note_descriptor(long number);
HIDDEN void ffuzz_note_signal(long number);
HIDDEN void ffuzz_note_mapping(uint64_t start, uint64_t length, int was_reserved);
HIDDEN void ffuzz_forget_mapping(uint64_t start, uint64_t length);
/* The run changes the access rights of memory from before it; `is_gone`: it has unmapped that. */
HIDDEN void ffuzz_note_rights(uint64_t start, uint64_t end, int is_gone);
#endif

#endif
