/* The edge map that is shared, and the borders of a run. */
#ifndef FFUZZ_EDGE_MAP_H
#define FFUZZ_EDGE_MAP_H

#include "base.h"

/* An empty map; `is_foreign`: a fuzzer other than ffuzz reads it. */
HIDDEN void ffuzz_edges_attach(uint8_t *map, uint64_t size, int is_foreign);
HIDDEN void ffuzz_rejected_attach(uint32_t *count); /* of runs that show nothing */
HIDDEN void ffuzz_edges_start(void); /* everything is in its place, with or without a map */

HIDDEN extern void (*ffuzz_at_end_of_run)(void); /* what annotations of the target take back, or NULL */

HIDDEN void ffuzz_show_life(void);
/* Whether the present run is to show nothing, once it ends well. */
HIDDEN void ffuzz_run_reject(int is_rejected);
HIDDEN int ffuzz_run_is_rejected(void);
HIDDEN void ffuzz_run_begins(void);   /* forget what was counted before the loop */
HIDDEN void ffuzz_run_goes_on(void);  /* the next input of the same process */
HIDDEN void ffuzz_run_ends(void);     /* everything counted is in shared memory */
HIDDEN void ffuzz_run_is_over(void);  /* nothing counted from here on is seen */

#endif
