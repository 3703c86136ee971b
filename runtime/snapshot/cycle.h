/* From one run to the next. */
#ifndef FFUZZ_SNAPSHOT_CYCLE_H
#define FFUZZ_SNAPSHOT_CYCLE_H

#include "snapshot/state.h"

/* This is a run of a snapshot; it is over, and the process would end with this status. */
HIDDEN int ffuzz_is_put_back(void);
HIDDEN void ffuzz_snapshot_run_ends(int status) __attribute__((noreturn));

#if FFUZZ_HAS_SNAPSHOTS
HIDDEN void ffuzz_snapshot_begin_run(uint32_t index); /* does not return */
HIDDEN void *ffuzz_control_stack(void);
HIDDEN uint64_t ffuzz_block_signals(void); /* what was blocked until now */
#endif

#endif
