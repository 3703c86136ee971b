/* Waiting for files to become ready: poll, select, epoll; and for time to pass. */
#define _GNU_SOURCE
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

#include "net/chance.h"
#include "net/kernel.h"
#include "net/options.h"
#include "net/session.h"

#define SECOND 1000000000
#define TO_READ (POLLIN | POLLRDNORM | POLLRDBAND)
#define TO_WRITE (POLLOUT | POLLWRNORM)
/* How long a descriptor of the kernel's may take to become ready before the run counts as idle. */
#define PATIENCE_MS 20

static int is_epoll_ready(const struct net_file *epoll);

/* In the present call no message comes: the program has something to write first, and a peer would wait for that. */
static int writes_first;

static int is_readable(struct net_file *file) {
  switch (file->kind) {
    case FILE_LISTENER: return !writes_first && ffuzz_net_can_accept(file, 1);
    case FILE_SESSION: return !writes_first && ffuzz_net_is_readable(file);
    case FILE_PIPE_IN:
    case FILE_PAIR: return file->count || !file->peer || file->peer->is_shut;
    case FILE_EVENTS:
    case FILE_NETLINK: return file->count != 0;
    case FILE_TIMER: return file->due && ffuzz_net_now() >= file->due;
    case FILE_EPOLL: return is_epoll_ready(file);
    case FILE_RANDOM:
    case FILE_REFUSED: return 1;
    default: return 0;
  }
}

static int is_writable(const struct net_file *file) {
  switch (file->kind) {
    case FILE_LISTENER:
    case FILE_SILENT:
    case FILE_TIMER:
    case FILE_EPOLL:
    case FILE_PIPE_IN: return 0;
    case FILE_PIPE_OUT:
    case FILE_PAIR: return !file->peer || file->peer->count < NET_PIPE;
    default: return 1;
  }
}

/* Of the events that are wanted, those that are there, and those that are always told. */
static unsigned events_of(struct net_file *file, unsigned wanted) {
  unsigned events = 0;
  if (wanted & TO_READ && is_readable(file)) events |= wanted & TO_READ;
  if (wanted & TO_WRITE && is_writable(file)) events |= wanted & TO_WRITE;
  if (file->kind == FILE_REFUSED) events |= POLLERR | POLLHUP;
  if (file->kind == FILE_PIPE_OUT && !file->peer) events |= POLLERR;
  if ((file->kind == FILE_PIPE_IN || file->kind == FILE_PAIR) && !file->peer) events |= POLLHUP;
  if (file->kind == FILE_SESSION && file->type != SOCK_DGRAM && ffuzz_net_has_ended(file)) {
    events |= wanted & (TO_READ | POLLRDHUP);
    if (file->is_shut) events |= POLLHUP;
  }
  return events;
}

static unsigned real_events(int number, unsigned wanted) {
  struct pollfd one = {number, (short)wanted, 0};
  struct timespec at_once = {0, 0};
  return REAL(ppoll, &one, 1, &at_once, NULL, 8) > 0 ? (unsigned)(unsigned short)one.revents : 0;
}

static int64_t nanoseconds(const struct timespec *limit) {
  if (!limit) return -1;
  return limit->tv_sec > INT64_MAX / SECOND / 2 ? INT64_MAX / 4 : limit->tv_sec * (int64_t)SECOND + limit->tv_nsec;
}

static int64_t of_milliseconds(int limit) { return limit < 0 ? -1 : (int64_t)limit * 1000000; }

/* The kernel's descriptors among these get some real time: another process may be at work. */
static int wait_for_others(struct pollfd *files, nfds_t count) {
  struct timespec patience = {0, PATIENCE_MS * 1000000};
  struct pollfd others[64];
  nfds_t found = 0;
  for (nfds_t i = 0; i < count && found < 64; i++)
    if (files[i].fd > 2 && !ffuzz_net_file(files[i].fd)) others[found++] = files[i];
  return found && REAL(ppoll, others, found, &patience, NULL, 8) > 0;
}

static int is_to_be_written(int number, unsigned wanted) {
  const struct net_file *file = number < 0 ? NULL : ffuzz_net_file(number);
  return file && file->kind == FILE_SESSION && wanted & TO_WRITE;
}

static int look(struct pollfd *files, nfds_t count) {
  int found = 0, waits = 0;
  for (nfds_t i = 0; i < count; i++) waits |= is_to_be_written(files[i].fd, (unsigned)(unsigned short)files[i].events);
  writes_first = waits && ffuzz_net_defers();
  for (nfds_t i = 0; i < count; i++) {
    struct net_file *file = ffuzz_net_file(files[i].fd);
    unsigned wanted = (unsigned)(unsigned short)files[i].events;
    files[i].revents = files[i].fd < 0 ? 0 : (short)(file ? events_of(file, wanted) : real_events(files[i].fd, wanted));
    found += files[i].revents != 0;
  }
  writes_first = 0;
  return found;
}

static int wait_for(struct pollfd *files, nfds_t count, int64_t limit, const char *call) {
  for (;;) {
    int found = look(files, count);
    if (found || (limit && wait_for_others(files, count) && (found = look(files, count)))) return found;
    if (!ffuzz_net_waits(limit, call)) return 0;
  }
}

PUBLIC int ppoll(struct pollfd *files, nfds_t count, const struct timespec *limit, const sigset_t *mask) {
  if (ffuzz_net.role) return wait_for(files, count, nanoseconds(limit), "poll");
  struct timespec copy = limit ? *limit : (struct timespec){0, 0};
  return (int)REAL(ppoll, files, count, limit ? &copy : NULL, mask, 8);
}

PUBLIC int poll(struct pollfd *files, nfds_t count, int limit) {
  if (ffuzz_net.role) return wait_for(files, count, of_milliseconds(limit), "poll");
  struct timespec real = {limit / 1000, limit % 1000 * 1000000L};
  return (int)REAL(ppoll, files, count, limit < 0 ? NULL : &real, NULL, 8);
}

extern void __chk_fail(void) __attribute__((noreturn));

PUBLIC int __poll_chk(struct pollfd *files, nfds_t count, int limit, size_t room) {
  if (count > room / sizeof *files) __chk_fail();
  return poll(files, count, limit);
}

PUBLIC int __ppoll_chk(struct pollfd *files, nfds_t count, const struct timespec *limit, const sigset_t *mask,
                       size_t room) {
  if (count > room / sizeof *files) __chk_fail();
  return ppoll(files, count, limit, mask);
}

static int has(const fd_set *set, int number) { return set && FD_ISSET(number, set); }

static int put(fd_set *set, int number, int is_in) {
  if (!set) return 0;
  if (!is_in) FD_CLR(number, set);
  return is_in && FD_ISSET(number, set);
}

static int select_for(int count, fd_set *to_read, fd_set *to_write, fd_set *other, int64_t limit) {
  struct pollfd files[FD_SETSIZE];
  nfds_t used = 0;
  if (count > FD_SETSIZE) count = FD_SETSIZE;
  for (int i = 0; i < count; i++) {
    short wanted = (short)((has(to_read, i) ? POLLIN : 0) | (has(to_write, i) ? POLLOUT : 0));
    if (wanted || has(other, i)) files[used++] = (struct pollfd){i, wanted, 0};
  }
  wait_for(files, used, limit, "select");
  for (nfds_t i = 0; i < used; i++)
    if (files[i].revents & POLLNVAL) FAIL(EBADF);
  int found = 0;
  for (nfds_t i = 0; i < used; i++) {
    int number = files[i].fd;
    found += put(to_read, number, files[i].revents & (POLLIN | POLLHUP | POLLERR));
    found += put(to_write, number, files[i].revents & (POLLOUT | POLLERR));
    put(other, number, 0);
  }
  return found;
}

PUBLIC int pselect(int count, fd_set *to_read, fd_set *to_write, fd_set *other, const struct timespec *limit,
                   const sigset_t *mask) {
  if (ffuzz_net.role) return select_for(count, to_read, to_write, other, nanoseconds(limit));
  struct timespec copy = limit ? *limit : (struct timespec){0, 0};
  struct {
    const sigset_t *mask;
    size_t bytes;
  } both = {mask, 8};
  return (int)REAL(pselect6, count, to_read, to_write, other, limit ? &copy : NULL, &both);
}

PUBLIC int select(int count, fd_set *to_read, fd_set *to_write, fd_set *other, struct timeval *limit) {
  struct timespec real = limit ? (struct timespec){limit->tv_sec, limit->tv_usec * 1000} : (struct timespec){0, 0};
  int found = pselect(count, to_read, to_write, other, limit ? &real : NULL, NULL);
  /* Linux tells how much is left of the time. */
  if (!found && limit) *limit = (struct timeval){0, 0};
  return found;
}

/* Epoll (epoll(7)). */

PUBLIC int epoll_create1(int flags) {
  return ffuzz_net.role ? ffuzz_net_open(FILE_EPOLL, 0, 0) : (int)REAL(epoll_create1, flags);
}

PUBLIC int epoll_create(int size) {
  if (size <= 0) FAIL(EINVAL);
  return epoll_create1(0);
}

PUBLIC int epoll_ctl(int number, int what, int watched, struct epoll_event *event) {
  struct net_file *epoll = ffuzz_net_file(number);
  struct net_watched *known = NULL, *unused = NULL;
  if (!epoll) return (int)REAL(epoll_ctl, number, what, watched, event);
  if (epoll->kind != FILE_EPOLL) FAIL(EINVAL);
  for (int i = 0; i < NET_WATCHED; i++) {
    if (epoll->watched[i].number == watched) known = &epoll->watched[i];
    if (!unused && epoll->watched[i].number < 0) unused = &epoll->watched[i];
  }
  if (what == EPOLL_CTL_ADD && known) FAIL(EEXIST);
  if (what != EPOLL_CTL_ADD && !known) FAIL(ENOENT);
  if (what == EPOLL_CTL_DEL) return known->number = -1, 0;
  if (!known && !(known = unused)) FAIL(ENOSPC);
  *known = (struct net_watched){.number = watched, .events = event->events, .data = event->data};
  return 0;
}

/* An edge is told once: of what became readable, each news; of what can be written, the first time. */
static unsigned new_edges(struct net_watched *one, const struct net_file *file, unsigned events) {
  if (!(one->events & EPOLLET) || !file) return events;
  if (events & TO_READ && one->seen == file->news) events &= ~(unsigned)(TO_READ | POLLRDHUP);
  if (events & TO_WRITE && one->seen_writable) events &= ~(unsigned)TO_WRITE;
  return events;
}

static unsigned events_of_watched(struct net_watched *one) {
  unsigned wanted = one->events & (TO_READ | TO_WRITE | POLLRDHUP | POLLERR | POLLHUP);
  struct net_file *file = ffuzz_net_file(one->number);
  if (one->number < 0 || !wanted) return 0;
  return new_edges(one, file, file ? events_of(file, wanted) : real_events(one->number, wanted));
}

static int is_epoll_ready(const struct net_file *epoll) {
  for (int i = 0; i < NET_WATCHED; i++) {
    struct net_watched *one = &epoll->watched[i];
    const struct net_file *file = one->number < 0 ? NULL : ffuzz_net_file(one->number);
    if ((!file || file->kind != FILE_EPOLL) && events_of_watched(one)) return 1;
  }
  return 0;
}

static int collect(struct net_file *epoll, struct epoll_event *events, int most) {
  int found = 0, waits = 0;
  for (int i = 0; i < NET_WATCHED; i++) {
    const struct net_watched *one = &epoll->watched[i];
    waits |= is_to_be_written(one->number, one->events) && !(one->events & EPOLLET && one->seen_writable);
  }
  writes_first = waits && ffuzz_net_defers();
  for (int i = 0; i < NET_WATCHED && found < most; i++) {
    struct net_watched *one = &epoll->watched[i];
    unsigned there = events_of_watched(one);
    if (!there) continue;
    const struct net_file *file = ffuzz_net_file(one->number);
    if (file && there & TO_READ) one->seen = file->news;
    if (there & TO_WRITE) one->seen_writable = 1;
    if (one->events & EPOLLONESHOT) one->events &= EPOLLONESHOT | EPOLLET;
    events[found].events = there;
    events[found++].data = one->data;
  }
  writes_first = 0;
  return found;
}

/* What an epoll file watches of the kernel's gets some real time. */
static int wait_for_other_watched(const struct net_file *epoll) {
  struct pollfd files[NET_WATCHED];
  nfds_t used = 0;
  for (int i = 0; i < NET_WATCHED; i++)
    if (epoll->watched[i].number >= 0)
      files[used++] = (struct pollfd){epoll->watched[i].number, (short)epoll->watched[i].events, 0};
  return wait_for_others(files, used);
}

static int epoll_for(int number, struct epoll_event *events, int most, int64_t limit) {
  struct net_file *epoll = ffuzz_net_file(number);
  if (epoll->kind != FILE_EPOLL || most <= 0) FAIL(EINVAL);
  for (;;) {
    int found = collect(epoll, events, most);
    if (found || (limit && wait_for_other_watched(epoll) && (found = collect(epoll, events, most)))) return found;
    if (!ffuzz_net_waits(limit, "epoll_wait")) return 0;
  }
}

PUBLIC int epoll_pwait2(int number, struct epoll_event *events, int most, const struct timespec *limit,
                        const sigset_t *mask) {
  if (!ffuzz_net_file(number)) return (int)REAL(epoll_pwait2, number, events, most, limit, mask, 8);
  return epoll_for(number, events, most, nanoseconds(limit));
}

PUBLIC int epoll_pwait(int number, struct epoll_event *events, int most, int limit, const sigset_t *mask) {
  if (!ffuzz_net_file(number)) return (int)REAL(epoll_pwait, number, events, most, limit, mask, 8);
  return epoll_for(number, events, most, of_milliseconds(limit));
}

PUBLIC int epoll_wait(int number, struct epoll_event *events, int most, int limit) {
  return epoll_pwait(number, events, most, limit, NULL);
}

/* Time passes at once. A program that only sleeps is over after some rounds. */

PUBLIC int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left) {
  if (!ffuzz_net.role) return (int)-ffuzz_kernel(SYS_clock_nanosleep, clock, flags, (long)time, (long)left, 0, 0);
  int64_t limit = nanoseconds(time);
  if (flags & TIMER_ABSTIME) {
    struct timespec now;
    clock_gettime(clock, &now);
    limit -= nanoseconds(&now);
  }
  if (limit > 0) while (ffuzz_net_waits(limit, "sleep"));
  return 0;
}

PUBLIC int nanosleep(const struct timespec *time, struct timespec *left) {
  return ffuzz_net.role ? clock_nanosleep(CLOCK_MONOTONIC, 0, time, left) : (int)REAL(nanosleep, time, left);
}

PUBLIC int usleep(useconds_t time) {
  struct timespec limit = {time / 1000000, time % 1000000 * 1000L};
  return nanosleep(&limit, NULL);
}

PUBLIC unsigned sleep(unsigned seconds) {
  struct timespec limit = {seconds, 0};
  return nanosleep(&limit, &limit) ? (unsigned)limit.tv_sec : 0;
}

PUBLIC int pause(void) {
  if (!ffuzz_net.role) return (int)REAL(ppoll, NULL, 0, NULL, NULL, 0);
  ffuzz_net_waits(-1, "pause");
  FAIL(EINTR);
}
