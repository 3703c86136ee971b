/* Which system calls of a run are trapped. */
#ifndef FFUZZ_SNAPSHOT_FILTER_H
#define FFUZZ_SNAPSHOT_FILTER_H

#include "snapshot/state.h"

#if FFUZZ_HAS_SNAPSHOTS
HIDDEN void ffuzz_filter_start(void);
HIDDEN void ffuzz_handle_traps(void (*handler)(int, siginfo_t *, void *));
#endif

#endif
