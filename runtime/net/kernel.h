/* System calls as libc offers them: -1 and errno. The descriptors are real ones. */
#ifndef FFUZZ_NET_KERNEL_H
#define FFUZZ_NET_KERNEL_H

#include <errno.h>
#include <sys/syscall.h>

#include "machine.h"

/* Descriptors of the stand-in, above those of programs and below the runtime's: a socket of the kernel and the file of
 * a recording, the input, and the transcript. */
enum { NET_REAL = 176, NET_RECORD = 177, NET_INPUT = 178, NET_TRANSCRIPT = 179 };

/* Of the program, in each run. */
#define NET_PID 1000

static inline long real_call(long number, long a, long b, long c, long d, long e, long f) {
  long result = ffuzz_kernel(number, a, b, c, d, e, f);
  if (result >= 0 || result < -4095) return result;
  errno = (int)-result;
  return -1;
}

#define REAL(NAME, ...) REAL_(SYS_##NAME, ##__VA_ARGS__, 0, 0, 0, 0, 0, 0)
#define REAL_(N, A, B, C, D, E, F, ...) real_call(N, (long)(A), (long)(B), (long)(C), (long)(D), (long)(E), (long)(F))
#define FAIL(ERROR) return errno = (ERROR), -1

#endif
