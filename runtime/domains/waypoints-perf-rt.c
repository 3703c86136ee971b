/* Domain `perf`: executions of each basic block in a run. */
#define __AFL_COMPILER 1
#include "waypoints.h"

FFUZZ_NEW_DOMAIN(__afl_perf_dsf, "perf", 65536, FUZZFACTORY_REDUCER_MAX, 0)
