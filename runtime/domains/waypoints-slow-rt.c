/* Domain `slow`: basic blocks executed in a run. */
#define __AFL_COMPILER 1
#include "waypoints.h"

FFUZZ_NEW_DOMAIN(__afl_slow_dsf, "slow", 1, FUZZFACTORY_REDUCER_MAX, 0)
FFUZZ_NAME_KEY("slow", 0, "blocks executed")

/* Of programs without source, as in waypoints-perf-rt.c. */
void __ffuzz_slow_executed(uint32_t times) { __fuzzfactory_dsf_add_saturating(__afl_slow_dsf, 0, times); }
