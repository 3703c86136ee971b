/* See executions.h. The counters are shared memory of all processes, so those of a run that was killed count too. */
#include "native/executions.h"

#include "native/blocks.h"
#include "native/callers.h"

/* runtime/domains/ has them. */
void __ffuzz_perf_executed(uint32_t key, uint32_t times);
void __ffuzz_slow_executed(uint32_t times);

static int counts_perf, counts_slow;

static void add(uint32_t file, uint32_t at, uint64_t count) {
  uint32_t times = count > UINT32_MAX ? UINT32_MAX : (uint32_t)count;
  if (counts_perf) __ffuzz_perf_executed(ffuzz_place_key(file, at), times);
  if (counts_slow) __ffuzz_slow_executed(times);
}

HIDDEN void ffuzz_executions_start(int perf, int slow) {
  counts_perf = perf;
  counts_slow = slow;
}

HIDDEN void ffuzz_executions_drop(void) { ffuzz_blocks_take_executions(NULL); }

HIDDEN void ffuzz_executions_add(void) { ffuzz_blocks_take_executions(add); }
