/* The snapshot itself. */
#ifndef FFUZZ_SNAPSHOT_TAKE_H
#define FFUZZ_SNAPSHOT_TAKE_H

#include "snapshot/state.h"

#if FFUZZ_HAS_SNAPSHOTS
/* Returns in each run, in the state that the program is in now. */
HIDDEN void ffuzz_snapshot_take(void);
#endif

#endif
