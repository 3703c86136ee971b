/* See domains.h. The maps are those of programs with source: runtime/domains/, compiled so that they register when
 * they are told to. */
#define _GNU_SOURCE
#include "native/domains.h"

#include <stdlib.h>
#include <string.h>

#include "native/allocations.h"
#include "native/executions.h"
#include "native/writes.h"

void __ffuzz_register___afl_mem_dsf(void);
void __ffuzz_register___afl_heap_dsf(void);
void __ffuzz_hook___ffuzz_heap_begin(void);
void __ffuzz_register___afl_out_dsf(void);
void __ffuzz_register___afl_perf_dsf(void);
void __ffuzz_register___afl_slow_dsf(void);

static int is(const char *word, size_t length, const char *name) {
  return length == strlen(name) && !memcmp(word, name, length);
}

HIDDEN void ffuzz_native_domains_start(void) {
  const char *list = getenv(FFUZZ_DOMAINS_ENV);
  if (!list) return;
  int mem = 0, heap = 0, out = 0, perf = 0, slow = 0;
  for (size_t length; *list; list += length + (list[length] != 0)) {
    length = strcspn(list, ",");
    if (is(list, length, "mem") && !mem) {
      __ffuzz_register___afl_mem_dsf();
      mem = 1;
    } else if (is(list, length, "heap") && !heap) {
      __ffuzz_register___afl_heap_dsf();
      __ffuzz_hook___ffuzz_heap_begin();
      heap = 1;
    } else if (is(list, length, "out") && !out) {
      __ffuzz_register___afl_out_dsf();
      out = 1;
    } else if (is(list, length, "perf") && !perf) {
      __ffuzz_register___afl_perf_dsf();
      perf = 1;
    } else if (is(list, length, "slow") && !slow) {
      __ffuzz_register___afl_slow_dsf();
      slow = 1;
    }
  }
  unsetenv(FFUZZ_DOMAINS_ENV);
  ffuzz_allocations_start(mem, heap);
  if (out) ffuzz_writes_start();
  ffuzz_executions_start(perf, slow);
}
