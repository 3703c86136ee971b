/* Domain `diff`: edges taken after the run has reached changed code. */
#define __AFL_COMPILER 1
#include "waypoints.h"

FFUZZ_NEW_DOMAIN(__afl_diff_dsf, "diff", 65536, FUZZFACTORY_REDUCER_LOG_BUCKET, 0)

uint32_t __afl_hits_diff; /* changed code was reached in this run */
static __thread uint32_t __afl_prev_diff_loc;

void __ffuzz_diff_hit(void) {
  if (!__afl_hits_diff) __afl_prev_diff_loc = 0;
  __afl_hits_diff = 1;
}

/* The shift tells A-B from B-A. */
void __ffuzz_diff_edge(uint32_t location) {
  if (!__afl_hits_diff) return;
  __fuzzfactory_dsf_add_saturating(__afl_diff_dsf, __afl_prev_diff_loc ^ location, 1);
  __afl_prev_diff_loc = location >> 1;
}

static void __ffuzz_diff_begin(void) { __afl_hits_diff = 0; }
FFUZZ_EACH_RUN(__ffuzz_diff_begin)
