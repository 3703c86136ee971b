/* Domain `perf`: executions of each basic block in a run. */
#define __AFL_COMPILER 1
#include "waypoints.h"

FFUZZ_NEW_DOMAIN(__afl_perf_dsf, "perf", 65536, FUZZFACTORY_REDUCER_MAX, 0)

/* Of programs without source; a pass of ffuzz-cc counts in the map itself. */
void __ffuzz_perf_executed(uint32_t key, uint32_t times) { __fuzzfactory_dsf_add_saturating(__afl_perf_dsf, key, times); }
