/* Calls of memcmp and bcmp in what rustc links (-Wl,--wrap): its compiler reports no comparison of strings. */
#include "comparisons.h"

#include "log.h"

int __real_memcmp(const void *a, const void *b, size_t length);
int __real_bcmp(const void *a, const void *b, size_t length);

#define WRAPPED(NAME)                                                                               \
  int __wrap_##NAME(const void *a, const void *b, size_t length) {                                  \
    if (__builtin_expect(ffuzz_foreign_log, 0))                                                     \
      __ffuzz_log_memory(ffuzz_site_of(__builtin_return_address(0)), FFUZZ_LOG_MEMORY << 8, a, b, length); \
    return __real_##NAME(a, b, length);                                                             \
  }

WRAPPED(memcmp)
WRAPPED(bcmp)
