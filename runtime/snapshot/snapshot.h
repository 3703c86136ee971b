/* Runs by a snapshot of this process. */
#ifndef FFUZZ_SNAPSHOT_SNAPSHOT_H
#define FFUZZ_SNAPSHOT_SNAPSHOT_H

#include "base.h"

/* Reserves memory in the process that starts all runs. */
HIDDEN void ffuzz_snapshot_reserve(void);
/* Returns before each run, or once if the runs begin later. */
HIDDEN void ffuzz_snapshot(void);

#endif
