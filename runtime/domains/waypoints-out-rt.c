/* Domain `out`: bytes written at each place of the program, summed over the run. */
#include <stddef.h>
#include <string.h>
#define __AFL_COMPILER 1
#include "waypoints.h"

FFUZZ_NEW_DOMAIN(__afl_out_dsf, "out", 65536, FUZZFACTORY_REDUCER_MAX, 0)

void __ffuzz_out_wrote(uint32_t key, int64_t items, int64_t size) {
  int64_t bytes;
  if (items <= 0 || size <= 0) return;
  if (__builtin_mul_overflow(items, size, &bytes) || bytes > UINT32_MAX) bytes = UINT32_MAX;
  __fuzzfactory_dsf_add_saturating(__afl_out_dsf, key, (uint32_t)bytes);
}

/* Decided here: a comparison in the program would be one for other domains to see. */
void __ffuzz_out_character(uint32_t key, int64_t result) { __ffuzz_out_wrote(key, result >= 0, 1); }

void __ffuzz_out_text(uint32_t key, const char *text, uint32_t more, int64_t result) {
  if (result >= 0) __ffuzz_out_wrote(key, (int64_t)(strlen(text) + more), 1);
}
