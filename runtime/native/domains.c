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

static void start_heap(void) {
  __ffuzz_register___afl_heap_dsf();
  __ffuzz_hook___ffuzz_heap_begin();
}

enum { MEM, HEAP, OUT, PERF, SLOW, DOMAINS };

static struct native_domain {
  const char *name;
  void (*start)(void);
  int is_wanted;
} domains[DOMAINS] = {
    [MEM] = {"mem", __ffuzz_register___afl_mem_dsf, 0},    [HEAP] = {"heap", start_heap, 0},
    [OUT] = {"out", __ffuzz_register___afl_out_dsf, 0},    [PERF] = {"perf", __ffuzz_register___afl_perf_dsf, 0},
    [SLOW] = {"slow", __ffuzz_register___afl_slow_dsf, 0},
};

/* Their maps are in the order of the list. */
static void want(const char *word, size_t length) {
  for (int i = 0; i < DOMAINS; i++) {
    struct native_domain *d = &domains[i];
    if (d->is_wanted || strlen(d->name) != length || memcmp(word, d->name, length)) continue;
    d->is_wanted = 1;
    d->start();
  }
}

HIDDEN void ffuzz_native_domains_start(void) {
  const char *list = getenv(FFUZZ_DOMAINS_ENV);
  if (!list) return;
  for (size_t length; *list; list += length + (list[length] != 0)) {
    length = strcspn(list, ",");
    want(list, length);
  }
  unsetenv(FFUZZ_DOMAINS_ENV);
  ffuzz_allocations_start(domains[MEM].is_wanted, domains[HEAP].is_wanted);
  if (domains[OUT].is_wanted) ffuzz_writes_start();
  ffuzz_executions_start(domains[PERF].is_wanted, domains[SLOW].is_wanted);
}
