/* What Go's code calls before it compares strings (-d=libfuzzer), for the log of comparisons. An object of its own: the
 * runtimes of sanitizers call it in all programs that have it. */
#include "comparisons.h"

#include "log.h"

ANY_STACK void __sanitizer_weak_hook_strcmp(void *caller, const char *a, const char *b, int result) {
  (void)result;
  if (ffuzz_foreign_log) __ffuzz_log_text(ffuzz_site_of(caller), FFUZZ_LOG_TEXT << 8, a, b, UINT64_MAX);
}
