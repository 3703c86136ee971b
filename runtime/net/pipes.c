/* Files by which a program talks to itself, and those where nothing ever comes from the kernel. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "net/chance.h"
#include "net/files.h"
#include "net/kernel.h"
#include "net/options.h"

#define SECOND 1000000000u

static int socket_flag(int is_nonblocking) { return is_nonblocking ? SOCK_NONBLOCK : 0; }

PUBLIC int pipe2(int two[2], int flags) {
  if (!ffuzz_net.role) return (int)REAL(pipe2, two, flags);
  int type = socket_flag(flags & O_NONBLOCK);
  two[0] = ffuzz_net_open(FILE_PIPE_IN, 0, type);
  if (two[0] < 0) return -1;
  two[1] = ffuzz_net_open(FILE_PIPE_OUT, 0, type);
  if (two[1] < 0) {
    close(two[0]);
    FAIL(EMFILE);
  }
  ffuzz_net_file(two[0])->peer = ffuzz_net_file(two[1]);
  ffuzz_net_file(two[1])->peer = ffuzz_net_file(two[0]);
  return 0;
}

PUBLIC int pipe(int two[2]) { return pipe2(two, 0); }

PUBLIC int eventfd(unsigned value, int flags) {
  if (!ffuzz_net.role) return (int)REAL(eventfd2, value, flags);
  int number = ffuzz_net_open(FILE_EVENTS, 0, socket_flag(flags & EFD_NONBLOCK));
  if (number < 0) return -1;
  ffuzz_net_file(number)->count = value;
  ffuzz_net_file(number)->interval = (flags & EFD_SEMAPHORE) != 0;
  return number;
}

PUBLIC int eventfd_read(int number, eventfd_t *value) {
  return read(number, value, sizeof *value) == sizeof *value ? 0 : -1;
}

PUBLIC int eventfd_write(int number, eventfd_t value) {
  return write(number, &value, sizeof value) == sizeof value ? 0 : -1;
}

PUBLIC int timerfd_create(int clock, int flags) {
  if (!ffuzz_net.role) return (int)REAL(timerfd_create, clock, flags);
  int number = ffuzz_net_open(FILE_TIMER, clock, socket_flag(flags & TFD_NONBLOCK));
  return number;
}

static uint64_t ticks(const struct timespec *time) { return (uint64_t)time->tv_sec * SECOND + (uint64_t)time->tv_nsec; }

static struct timespec as_time(uint64_t ticks) {
  return (struct timespec){(time_t)(ticks / SECOND), (long)(ticks % SECOND)};
}

PUBLIC int timerfd_gettime(int number, struct itimerspec *to) {
  const struct net_file *timer = ffuzz_net_file(number);
  if (!timer) return (int)REAL(timerfd_gettime, number, to);
  uint64_t now = ffuzz_net_now();
  *to = (struct itimerspec){as_time(timer->interval), as_time(timer->due > now ? timer->due - now : timer->due != 0)};
  return 0;
}

PUBLIC int timerfd_settime(int number, int flags, const struct itimerspec *to, struct itimerspec *before) {
  struct net_file *timer = ffuzz_net_file(number);
  if (!timer) return (int)REAL(timerfd_settime, number, flags, to, before);
  if (before) timerfd_gettime(number, before);
  uint64_t value = ticks(&to->it_value), now = ffuzz_net_now();
  if (flags & TFD_TIMER_ABSTIME && value) {
    struct timespec time;
    clock_gettime(timer->domain, &time);
    value = value > ticks(&time) ? value - ticks(&time) : 1;
  }
  timer->due = value ? now + value : 0;
  timer->interval = ticks(&to->it_interval);
  timer->news++;
  return 0;
}

PUBLIC int signalfd(int number, const sigset_t *signals, int flags) {
  if (!ffuzz_net.role) return (int)REAL(signalfd4, number, signals, 8, flags);
  return number >= 0 ? number : ffuzz_net_open(FILE_SILENT, 0, socket_flag(flags & SFD_NONBLOCK));
}

PUBLIC int inotify_init1(int flags) {
  if (!ffuzz_net.role) return (int)REAL(inotify_init1, flags);
  return ffuzz_net_open(FILE_SILENT, 0, socket_flag(flags & IN_NONBLOCK));
}

PUBLIC int inotify_init(void) { return inotify_init1(0); }

PUBLIC int inotify_add_watch(int number, const char *path, uint32_t mask) {
  static int watches;
  return ffuzz_net_file(number) ? ++watches : (int)REAL(inotify_add_watch, number, path, mask);
}

PUBLIC int inotify_rm_watch(int number, int watch) {
  return ffuzz_net_file(number) ? 0 : (int)REAL(inotify_rm_watch, number, watch);
}
