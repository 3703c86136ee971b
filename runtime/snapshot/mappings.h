/* Which memory there is: the mappings of the program, and our own. */
#ifndef FFUZZ_SNAPSHOT_MAPPINGS_H
#define FFUZZ_SNAPSHOT_MAPPINGS_H

#include "snapshot/state.h"

#if FFUZZ_HAS_SNAPSHOTS
HIDDEN void ffuzz_memory_reserve(void); /* in the parent of all runs */
HIDDEN void ffuzz_memory_start(void); /* for the two structures */
HIDDEN void *ffuzz_own_memory(uint64_t bytes); /* is sealed */
HIDDEN void *ffuzz_own_notes(uint64_t bytes);  /* stays as it is */
HIDDEN void ffuzz_memory_seal(void);
HIDDEN void ffuzz_mappings_list(void);
HIDDEN struct mapping *ffuzz_mapping_behind(uint64_t address);
HIDDEN int ffuzz_is_own(uint64_t start, uint64_t end);
#endif

#endif
