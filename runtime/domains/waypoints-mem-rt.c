/* Domain `mem`: bytes requested at each place of the program that allocates, summed over the run. */
#include <stddef.h>
#include <string.h>
#define __AFL_COMPILER 1
#include "waypoints.h"

FFUZZ_NEW_DOMAIN(__afl_mem_dsf, "mem", 1024, FUZZFACTORY_REDUCER_MAX, 0)

void __ffuzz_mem_requested(uint32_t key, uint64_t count, uint64_t size) {
  uint64_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes) || bytes > UINT32_MAX) bytes = UINT32_MAX;
  __fuzzfactory_dsf_add_saturating(__afl_mem_dsf, key, (uint32_t)bytes);
}

/* The copy of a string, made by strdup or strndup. */
void __ffuzz_mem_copied(uint32_t key, const char *copy) {
  if (copy) __ffuzz_mem_requested(key, 1, strlen(copy) + 1);
}
