/* System calls of a run that are trapped. */
#ifndef FFUZZ_SNAPSHOT_CALLS_H
#define FFUZZ_SNAPSHOT_CALLS_H

#include "snapshot/state.h"

#if FFUZZ_HAS_SNAPSHOTS
HIDDEN void ffuzz_on_trap(int signal_number, siginfo_t *info, void *context);
#endif

#endif
