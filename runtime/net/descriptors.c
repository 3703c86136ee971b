/* Descriptors: closing, doubling, and what is asked of them. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/kernel.h"
#include "net/options.h"
#include "net/session.h"

static int is_own(int number) { return number >= NET_REAL && number <= NET_TRANSCRIPT; }

static int close_virtual(int number) {
  struct net_file *file = ffuzz_net_take_away(number);
  if (!file) return 0;
  if (file->kind == FILE_SESSION) ffuzz_net_session_closes(file);
  file->kind = FILE_FREE;
  return 0;
}

PUBLIC int close(int number) {
  if (ffuzz_net_file(number)) return close_virtual(number);
  if (ffuzz_net.role && is_own(number)) return 0;
  return (int)REAL(close, number);
}

/* By number, because ours are in between. */
PUBLIC int close_range(unsigned first, unsigned last, int flags) {
  if (!ffuzz_net.role) return (int)REAL(close_range, first, last, flags);
  for (int number = NET_FIRST; number < NET_FIRST + NET_MOST; number++)
    if (ffuzz_net_file(number) && (unsigned)number >= first && (unsigned)number <= last && !flags) close_virtual(number);
  const unsigned own[] = {NET_INPUT, NET_TRANSCRIPT};
  for (unsigned i = 0; i < 2; i++) {
    if (first < own[i] && last >= first) REAL(close_range, first, last < own[i] ? last : own[i] - 1, flags);
    if (first <= own[i]) first = own[i] + 1;
  }
  return first <= last ? (int)REAL(close_range, first, last, flags) : 0;
}

PUBLIC void closefrom(int first) { close_range((unsigned)(first < 0 ? 0 : first), ~0u, 0); }

PUBLIC int dup(int number) {
  struct net_file *file = ffuzz_net_file(number);
  return file ? ffuzz_net_number(file, 0) : (int)REAL(dup, number);
}

/* The kernel must not give this number to another file while it stands for one of ours. */
static void keep_from_kernel(int number) {
  if ((int)REAL(fcntl, number, F_GETFD) >= 0) return;
  int null = (int)REAL(openat, AT_FDCWD, "/dev/null", O_RDWR, 0);
  if (null < 0 || null == number) return;
  REAL(dup3, null, number, 0);
  REAL(close, null);
}

/* Besides our own numbers, the standard streams can stand for a file of ours: inetd's way. */
PUBLIC int dup3(int number, int to, int flags) {
  struct net_file *file = ffuzz_net_file(number);
  if (!file && !ffuzz_net_file(to)) {
    if (ffuzz_net.role && is_own(to)) FAIL(EBADF);
    return (int)REAL(dup3, number, to, flags);
  }
  if (!file && to < 3) return close_virtual(to), (int)REAL(dup3, number, to, flags);
  if (!file || (!ffuzz_net_is_virtual(to) && (to < 0 || to > 2))) {
    ffuzz_net_note_word(NET_REFUSED, "dup2 of a socket");
    FAIL(EBADF);
  }
  if (ffuzz_net_file(to)) close_virtual(to);
  if (to < 3) keep_from_kernel(to);
  return ffuzz_net_put(file, to);
}

PUBLIC int dup2(int number, int to) {
  if (number != to) return dup3(number, to, 0);
  return ffuzz_net_file(number) ? to : (int)REAL(fcntl, number, F_GETFD) < 0 ? -1 : to;
}

static int control(struct net_file *file, int what, long value) {
  switch (what) {
    case F_GETFL: return O_RDWR | (file->is_nonblocking ? O_NONBLOCK : 0);
    case F_SETFL: return file->is_nonblocking = (value & O_NONBLOCK) != 0, 0;
    case F_DUPFD:
    case F_DUPFD_CLOEXEC: return ffuzz_net_number(file, (int)value);
    case F_GETFD: return FD_CLOEXEC;
    default: return 0;
  }
}

PUBLIC int fcntl64(int number, int what, ...) {
  va_list list;
  va_start(list, what);
  long value = va_arg(list, long);
  va_end(list);
  struct net_file *file = ffuzz_net_file(number);
  return file ? control(file, what, value) : (int)REAL(fcntl, number, what, value);
}

PUBLIC int fcntl(int, int, ...) __attribute__((alias("fcntl64")));

/* The only interface of the machine is the loopback. */
static int control_interface(unsigned long what, struct ifreq *of) {
  switch (what) {
    case SIOCGIFNAME:
      if (of->ifr_ifindex != 1) FAIL(ENODEV);
      strcpy(of->ifr_name, "lo");
      return 0;
    case SIOCGIFINDEX: of->ifr_ifindex = 1; return 0;
    case SIOCGIFFLAGS: of->ifr_flags = IFF_UP | IFF_LOOPBACK | IFF_RUNNING; return 0;
    case SIOCGIFMTU: of->ifr_mtu = 65536; return 0;
    case SIOCGIFADDR: {
      struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
      memcpy(&of->ifr_addr, &here, sizeof here);
      return 0;
    }
  }
  FAIL(ENOTTY);
}

PUBLIC int ioctl(int number, unsigned long what, ...) {
  va_list list;
  va_start(list, what);
  void *value = va_arg(list, void *);
  va_end(list);
  struct net_file *file = ffuzz_net_file(number);
  if (!file) return (int)REAL(ioctl, number, what, value);
  switch (what) {
    case FIONBIO: file->is_nonblocking = *(int *)value != 0; return 0;
    case FIONREAD: *(int *)value = (int)ffuzz_net_waiting_bytes(file); return 0;
    case FIOCLEX:
    case FIONCLEX:
    case FIOASYNC: return 0;
  }
  return control_interface(what, value);
}

static mode_t mode_of(const struct net_file *file) {
  int is_pipe = file->kind == FILE_PIPE_IN || file->kind == FILE_PIPE_OUT;
  return (is_pipe ? S_IFIFO : file->kind == FILE_RANDOM ? S_IFCHR : S_IFSOCK) | 0600;
}

PUBLIC int fstat(int number, struct stat *to) {
  const struct net_file *file = ffuzz_net_file(number);
  if (!file) return (int)REAL(fstat, number, to);
  *to = (struct stat){.st_mode = mode_of(file), .st_nlink = 1, .st_blksize = 4096};
  return 0;
}

PUBLIC int fstat64(int, struct stat64 *) __attribute__((alias("fstat")));

PUBLIC off_t lseek(int number, off_t offset, int from) {
  if (!ffuzz_net_file(number)) return REAL(lseek, number, offset, from);
  FAIL(ESPIPE);
}

PUBLIC off64_t lseek64(int, off64_t, int) __attribute__((alias("lseek")));

static int is_random(const char *path) { return !strcmp(path, "/dev/urandom") || !strcmp(path, "/dev/random"); }

/* A path in the folder of this process, by the number that the program knows. */
static const char *by_own_number(const char *path, char *own, size_t room) {
  char known[32];
  if (!ffuzz_net.role || strncmp(path, "/proc/", 6)) return path;
  size_t length = (size_t)snprintf(known, sizeof known, "/proc/%d/", (int)getpid());
  if (strncmp(path, known, length) || strlen(path) >= room) return path;
  snprintf(own, room, "/proc/self/%s", path + length);
  return own;
}

/* A number that the kernel gives and that is one of ours goes above ours. */
static int moved(int number) {
  if (!ffuzz_net.role || !ffuzz_net_is_virtual(number)) return number;
  int above = (int)REAL(fcntl, number, F_DUPFD_CLOEXEC, 200);
  REAL(close, number);
  return above;
}

PUBLIC int openat(int folder, const char *path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  int mode = va_arg(list, int);
  va_end(list);
  char own[PATH_MAX];
  if (ffuzz_net.role && is_random(path)) return ffuzz_net_open(FILE_RANDOM, 0, 0);
  return moved((int)REAL(openat, folder, by_own_number(path, own, sizeof own), flags, mode));
}

PUBLIC int open(const char *path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  int mode = va_arg(list, int);
  va_end(list);
  return openat(AT_FDCWD, path, flags, mode);
}

PUBLIC int open64(const char *, int, ...) __attribute__((alias("open")));
PUBLIC int openat64(int, const char *, int, ...) __attribute__((alias("openat")));
