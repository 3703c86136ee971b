#define _GNU_SOURCE
#include "net/chance.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "net/kernel.h"
#include "net/options.h"
#include "net/transcript.h"

#define SECOND 1000000000u
#define QUESTION 1000u
/* 14 November 2023, and an uptime of a day. */
#define EPOCH 1700000000
#define UPTIME 86400

static uint64_t state = 88172645463325252u, now;

HIDDEN void ffuzz_net_random(void *to, size_t length) {
  for (uint8_t *at = to; length--; at++) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    *at = (uint8_t)(state >> 32);
  }
}

HIDDEN uint64_t ffuzz_net_now(void) { return now += QUESTION; }

HIDDEN void ffuzz_net_move_clock(uint64_t nanoseconds) { now += nanoseconds; }

PUBLIC ssize_t getrandom(void *to, size_t length, unsigned flags) {
  if (!ffuzz_net.role) return REAL(getrandom, to, length, flags);
  ffuzz_net_random(to, length);
  return (ssize_t)length;
}

PUBLIC int getentropy(void *to, size_t length) {
  if (length > 256) FAIL(EIO);
  return getrandom(to, length, 0) < 0 ? -1 : 0;
}

PUBLIC uint32_t arc4random(void) {
  uint32_t number;
  getrandom(&number, sizeof number, 0);
  return number;
}

PUBLIC void arc4random_buf(void *to, size_t length) { getrandom(to, length, 0); }

PUBLIC uint32_t arc4random_uniform(uint32_t limit) { return limit < 2 ? 0 : arc4random() % limit; }

/* Programs that do not trust their libc ask for randomness by its number, and for what their libc does not have. */
PUBLIC long syscall(long number, ...) {
  long a[6];
  va_list list;
  va_start(list, number);
  for (int i = 0; i < 6; i++) a[i] = va_arg(list, long);
  va_end(list);
  if (ffuzz_net.role && number == SYS_getrandom) return getrandom((void *)a[0], (size_t)a[1], (unsigned)a[2]);
  if (ffuzz_net.role && number == SYS_getpid) return getpid();
  if (ffuzz_net.role && number == SYS_gettid) return gettid();
  if (ffuzz_net.role && number == SYS_io_uring_setup) {
    ffuzz_net_note_word(NET_REFUSED, "io_uring_setup");
    FAIL(ENOSYS);
  }
  return real_call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static int is_of_day(clockid_t clock) {
  return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI;
}

static int is_of_process(clockid_t clock) { return clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID; }

PUBLIC int clock_gettime(clockid_t clock, struct timespec *to) {
  if (!ffuzz_net.role || clock < 0) return (int)REAL(clock_gettime, clock, to);
  uint64_t at = ffuzz_net_now();
  time_t start = is_of_day(clock) ? EPOCH : is_of_process(clock) ? 0 : UPTIME;
  *to = (struct timespec){start + (time_t)(at / SECOND), (long)(at % SECOND)};
  return 0;
}

PUBLIC int gettimeofday(struct timeval *to, void *zone) {
  struct timespec at;
  if (!ffuzz_net.role) return (int)REAL(gettimeofday, to, zone);
  clock_gettime(CLOCK_REALTIME, &at);
  *to = (struct timeval){at.tv_sec, at.tv_nsec / 1000};
  return 0;
}

PUBLIC time_t time(time_t *to) {
  struct timespec at;
  clock_gettime(CLOCK_REALTIME, &at);
  if (to) *to = at.tv_sec;
  return at.tv_sec;
}
