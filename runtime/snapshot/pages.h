/* Memory of a snapshot. */
#ifndef FFUZZ_SNAPSHOT_PAGES_H
#define FFUZZ_SNAPSHOT_PAGES_H

#include "snapshot/state.h"

#if FFUZZ_HAS_SNAPSHOTS
/* Opens what the kernel offers for it. Not before it is needed, because a program may count its descriptors; but another
 * user may not do it. */
HIDDEN void ffuzz_memory_open(void);
HIDDEN void ffuzz_memory_save(void);
HIDDEN void ffuzz_memory_put_back(void);
#endif

#endif
