/* Memory of a snapshot. */
#ifndef FFUZZ_SNAPSHOT_PAGES_H
#define FFUZZ_SNAPSHOT_PAGES_H

#include "snapshot/state.h"

#if FFUZZ_HAS_SNAPSHOTS
HIDDEN void ffuzz_memory_save(void);
HIDDEN void ffuzz_memory_put_back(void);
#endif

#endif
