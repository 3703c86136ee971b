/* What domains keep with the runtime: variables that name their maps, and functions for each run. */
#ifndef FFUZZ_MAPS_H
#define FFUZZ_MAPS_H

#include "domains.h"

/* Variables of inlined updates name the array as it lies now. */
HIDDEN void ffuzz_maps_place(void);
HIDDEN void ffuzz_hooks_call(void); /* a run begins */

#endif
