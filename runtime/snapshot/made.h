/* What the prologue has made: open files, and mappings. */
#ifndef FFUZZ_SNAPSHOT_MADE_H
#define FFUZZ_SNAPSHOT_MADE_H

#include "snapshot/state.h"

#if FFUZZ_HAS_SNAPSHOTS
HIDDEN int ffuzz_identify(long folder, const char *path, struct file_id *id);
HIDDEN int ffuzz_is_input(const struct file_id *id);
HIDDEN struct opened *ffuzz_opened_as(long number);

HIDDEN void ffuzz_prologue_ends(void); /* notes what it has left open */
/* A run changes what the prologue made: the runs have to begin before that. */
HIDDEN void ffuzz_refuse_opened(long number);
HIDDEN void ffuzz_refuse_mapped(uint64_t start, uint64_t end);
#endif

#endif
