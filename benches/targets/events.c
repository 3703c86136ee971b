/* What an event costs: 256 blocks behind conditions that hold, with nothing in them. Prints the
 * nanoseconds of a pass after all keys were reset, of a pass after that, and the events of a pass.
 *
 * -DCALLS counts by a call in each block; built with WAYPOINTS=perf the blocks count themselves. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "waypoints.h"

#define KEYS 65536
#define PASSES 2000

#ifdef CALLS
FUZZFACTORY_DSF_NEW(calls, KEYS, FUZZFACTORY_REDUCER_MAX, 0)
#define EVENT(i) FUZZFACTORY_DSF_INC(calls, i, 1);
#else
#define EVENT(i)
#endif

static volatile char holds[256];

/* The assembler statement is nothing, but no optimiser knows. */
#define BLOCK(i)                         \
  if (holds[i]) {                        \
    EVENT(i)                             \
    __asm__ volatile("" : : : "memory"); \
  }
#define BLOCKS_4(i) BLOCK(i) BLOCK(i + 1) BLOCK(i + 2) BLOCK(i + 3)
#define BLOCKS_16(i) BLOCKS_4(i) BLOCKS_4(i + 4) BLOCKS_4(i + 8) BLOCKS_4(i + 12)
#define BLOCKS_64(i) BLOCKS_16(i) BLOCKS_16(i + 16) BLOCKS_16(i + 32) BLOCKS_16(i + 48)

__attribute__((noinline)) static void pass(void) {
  BLOCKS_64(0) BLOCKS_64(64) BLOCKS_64(128) BLOCKS_64(192)
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The median of all passes: this machine has other things to do. */
static double time_of(int reset) {
  static double times[PASSES];
  for (int i = 0; i < PASSES; i++) {
    if (reset && __fuzzfactory_dsf_map) memset(__fuzzfactory_dsf_map, 0, KEYS * 4);
    double start = now();
    pass();
    times[i] = now() - start;
  }
  qsort(times, PASSES, sizeof *times, ascending);
  return times[PASSES / 2];
}

int main(void) {
  memset((void *)holds, 1, sizeof holds);
  double first = time_of(1);
  unsigned events = 0;
  uint32_t *map = __fuzzfactory_dsf_map;
  if (map) memset(map, 0, KEYS * 4);
  pass();
  for (int i = 0; map && i < KEYS; i++) events += map[i];
  printf("%f %f %u\n", first, time_of(0), events);
  return 0;
}
