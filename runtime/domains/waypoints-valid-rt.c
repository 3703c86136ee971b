/* Domain `valid`: executions of each basic block by inputs that satisfy the assumptions which the
 * program states by the macros of afl_valid.h. */
#define __AFL_COMPILER 1
#include "waypoints.h"

FFUZZ_NEW_DOMAIN(__afl_valid_dsf, "valid", 65536, FUZZFACTORY_REDUCER_LOG_BUCKET, 0)

/* Until the run ends blocks count into memory that nobody reads. */
void __afl_valid_assumption_failure(void) { __ffuzz_discard_map(__afl_valid_dsf); }
