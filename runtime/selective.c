/* AFL++'s annotations that leave edges out, __AFL_COVERAGE_OFF() and its relatives. In an object of its own, which
 * is linked into programs that have them.
 *
 * What is counted while coverage is off is forgotten when it goes on again, or when the run ends: at exit(), at the
 * next iteration of the loop, at the end of a snapshot's run. A run that ends by a signal or by _exit() shows it. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "selective.h"
#include "domains.h"
#include "edge-map.h"
#include "memory.h"
#include "modules.h"

/* Of __AFL_COVERAGE_START_OFF(). */
extern int __afl_selective_coverage_start_off __attribute__((weak));

void __ffuzz_each_run(void (*hook)(void));

static uint8_t *saved;
static int is_off, is_skipped;

static void clear_counters(void) {
  for (uint32_t i = 0; i < ffuzz_module_count; i++) memset(ffuzz_modules[i].start, 0, ffuzz_modules[i].count);
}

static void save_counters(void) {
  uint8_t *to = saved;
  for (uint32_t i = 0; i < ffuzz_module_count; to += ffuzz_modules[i++].count)
    memcpy(to, ffuzz_modules[i].start, ffuzz_modules[i].count);
}

static void load_counters(void) {
  const uint8_t *from = saved;
  for (uint32_t i = 0; i < ffuzz_module_count; from += ffuzz_modules[i++].count)
    memcpy(ffuzz_modules[i].start, from, ffuzz_modules[i].count);
}

void __afl_coverage_off(void) {
  if (is_off || !saved) return;
  save_counters();
  is_off = 1;
}

void __afl_coverage_on(void) {
  if (!is_off || is_skipped) return;
  load_counters();
  is_off = 0;
}

void __afl_coverage_discard(void) {
  if (is_off)
    memset(saved, 0, ffuzz_map_size());
  else
    clear_counters();
}

/* Nothing of this run is seen, its domains neither. */
void __afl_coverage_skip(void) { is_skipped = 1; }

static void end_run(void) {
  if (is_skipped) {
    clear_counters();
    ffuzz_domains_reset();
  } else {
    __afl_coverage_on();
  }
}

static void begin_run(void) {
  is_off = is_skipped = 0;
  if (&__afl_selective_coverage_start_off && __afl_selective_coverage_start_off) __afl_coverage_off();
}

/* Before the first run, so that no run maps memory. All modules are known then. */
static void begin(void) {
  if (!saved && ffuzz_module_count) {
    saved = ffuzz_pages(ffuzz_page_up(ffuzz_map_size()));
    ffuzz_at_end_of_run = end_run;
    atexit(end_run);
  }
  begin_run();
}

/* Before the fork server starts. */
__attribute__((constructor(0))) static void register_hook(void) { __ffuzz_each_run(begin); }
