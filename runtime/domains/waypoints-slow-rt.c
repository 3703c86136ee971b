/* Domain `slow`: basic blocks executed in a run. */
#define __AFL_COMPILER 1
#include "waypoints.h"

FFUZZ_NEW_DOMAIN(__afl_slow_dsf, "slow", 1, FUZZFACTORY_REDUCER_MAX, 0)
FFUZZ_NAME_KEY("slow", 0, "blocks executed")
