/* System calls of a run that are trapped. */
#ifndef FFUZZ_SNAPSHOT_CALLS_H
#define FFUZZ_SNAPSHOT_CALLS_H

#include "snapshot/state.h"

#if FFUZZ_HAS_SNAPSHOTS
/* True if the call sets what is set already: identity, limits, priority. */
HIDDEN int ffuzz_call_changes_nothing(const struct call *c);
/* Closes a range of the program's descriptors. */
HIDDEN void ffuzz_close_range(uint64_t first, uint64_t last);
HIDDEN void ffuzz_on_trap(int signal_number, siginfo_t *info, void *context);
#endif

#endif
