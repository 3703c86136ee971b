/* Assumptions about valid inputs: the function is left when one does not hold, and the `valid`
 * domain (if it is built in) forgets what it has counted in this run. */
#ifndef FFUZZ_AFL_VALID_H
#define FFUZZ_AFL_VALID_H

#include <stdio.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif
/* Weak: only the runtime of the `valid` domain has it. */
__attribute__((weak)) void __afl_valid_assumption_failure(void);
#ifdef __cplusplus
}
#endif

#define FFUZZ_ASSUMPTION_FAILED()                                                \
  do {                                                                           \
    fprintf(stderr, "Assumption failure on %s:%d\n", __FILE__, __LINE__);        \
    if (__afl_valid_assumption_failure) __afl_valid_assumption_failure();        \
  } while (0)

#define ASSUME_OR_RETURN(expr, rval) \
  do {                               \
    if (!(expr)) {                   \
      FFUZZ_ASSUMPTION_FAILED();     \
      return rval;                   \
    }                                \
  } while (0)

#define ASSUME_OR_EXIT(expr)     \
  do {                           \
    if (!(expr)) {               \
      FFUZZ_ASSUMPTION_FAILED(); \
      _exit(1);                  \
    }                            \
  } while (0)

#define ASSUME1(expr) ASSUME_OR_RETURN(expr, 1)

#endif
