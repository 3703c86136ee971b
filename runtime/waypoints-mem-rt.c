/* Domain `mem`: bytes requested by each malloc or calloc of the program, summed over the run. */
#include <stddef.h>
#define __AFL_COMPILER 1
#include "waypoints.h"

FFUZZ_NEW_DOMAIN(__afl_mem_dsf, "mem", 1024, FUZZFACTORY_REDUCER_MAX, 0)

/* Called after the allocation. It is given the pointer only so that the compiler cannot prove the
 * block unused and drop the allocation, which happens to malloc/free pairs otherwise. */
void __ffuzz_mem_allocated(uint32_t key, uint64_t count, uint64_t size, const void *block) {
  uint64_t bytes;
  (void)block;
  if (__builtin_mul_overflow(count, size, &bytes) || bytes > UINT32_MAX) bytes = UINT32_MAX;
  __fuzzfactory_dsf_add_saturating(__afl_mem_dsf, key, (uint32_t)bytes);
}
