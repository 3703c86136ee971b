/* Alarms, on the virtual clock: a signal comes when the program has waited for so long. */
#define _GNU_SOURCE
#include "net/alarms.h"

#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include "net/chance.h"
#include "net/kernel.h"
#include "net/options.h"

#define SECOND 1000000000u
#define MICROSECOND 1000u

static uint64_t due, interval;

HIDDEN uint64_t ffuzz_net_next_alarm(void) { return due; }

/* The program has a handler: it is called now, not in the middle of its work. */
HIDDEN int ffuzz_net_alarm_rings(void) {
  struct sigaction present;
  if (!due || ffuzz_net_now() < due) return 1;
  due = interval ? due + interval : 0;
  sigaction(SIGALRM, NULL, &present);
  if (present.sa_handler == SIG_DFL) return 0;
  if (present.sa_handler != SIG_IGN) raise(SIGALRM);
  return 1;
}

static uint64_t left(void) {
  uint64_t now = ffuzz_net_now();
  return due > now ? due - now : 0;
}

PUBLIC unsigned alarm(unsigned seconds) {
  if (!ffuzz_net.role) return (unsigned)REAL(alarm, seconds);
  uint64_t before = left();
  due = seconds ? ffuzz_net_now() + (uint64_t)seconds * SECOND : 0;
  interval = 0;
  return (unsigned)((before + SECOND - 1) / SECOND);
}

static uint64_t of(const struct timeval *time) {
  return (uint64_t)time->tv_sec * SECOND + (uint64_t)time->tv_usec * MICROSECOND;
}

static struct timeval timeval_of(uint64_t time) {
  return (struct timeval){(time_t)(time / SECOND), (suseconds_t)(time % SECOND / MICROSECOND)};
}

PUBLIC int getitimer(__itimer_which_t which, struct itimerval *to) {
  if (!ffuzz_net.role || which != ITIMER_REAL) return (int)REAL(getitimer, which, to);
  *to = (struct itimerval){timeval_of(interval), timeval_of(left())};
  return 0;
}

PUBLIC int setitimer(__itimer_which_t which, const struct itimerval *new, struct itimerval *old) {
  if (!ffuzz_net.role || which != ITIMER_REAL) return (int)REAL(setitimer, which, new, old);
  if (old) getitimer(which, old);
  uint64_t first = new ? of(&new->it_value) : 0;
  due = first ? ffuzz_net_now() + first : 0;
  interval = new ? of(&new->it_interval) : 0;
  return 0;
}
