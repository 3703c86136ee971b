/* The prologue: what a program does before it looks at its input. Every run does the same, so the snapshot is
 * taken behind it.
 *
 * Until then each system call comes here (syscall-user-dispatch.rst of the kernel). A call is made if the input
 * has no part in it, and all that it leaves behind is memory, or what is put back all the same. The first other
 * call ends the prologue: the snapshot is taken, and each run begins by making that call. So a call that is not
 * known here is no danger. The rules for this code are in state.h. */
#define _GNU_SOURCE
#include "snapshot/prologue.h"

#if FFUZZ_HAS_SNAPSHOTS
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runs.h"
#include "snapshot/calls.h"
#include "snapshot/filter.h"
#include "snapshot/made.h"
#include "snapshot/mappings.h"
#include "snapshot/pages.h"
#include "snapshot/server.h"
#include "snapshot/take.h"

/* What older headers lack (include/uapi/linux/prctl.h, asm-generic/siginfo.h). */
#define DISPATCH 59 /* PR_SET_SYSCALL_USER_DISPATCH */
#define CODE_DISPATCHED 2 /* SYS_USER_DISPATCH */

/* An open() that leaves the file as it is. */
#define HARMLESS_FLAGS \
  (O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK | O_DIRECTORY | O_NOATIME | 0100000 /* O_LARGEFILE */)

/* Whatever their arguments are. Not getrandom: by fork each run gets other bytes. */
static const uint16_t kept[] = {
    SYS_getpid, SYS_gettid, SYS_getppid, SYS_getpgid, SYS_getsid, SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid,
    SYS_getresuid, SYS_getresgid, SYS_getgroups, SYS_capget, SYS_getpriority, SYS_getrusage, SYS_getitimer, SYS_times,
    SYS_sched_getaffinity, SYS_sched_getparam, SYS_sched_getscheduler, SYS_sched_yield, SYS_gettimeofday,
    SYS_clock_gettime, SYS_clock_getres, SYS_clock_nanosleep, SYS_nanosleep, SYS_uname, SYS_sysinfo, SYS_getcwd,
    SYS_umask, SYS_brk, SYS_getrlimit,
#ifdef SYS_open
    SYS_time, SYS_getpgrp,
#endif
};

/* Of the descriptor that is their first argument. */
static const uint16_t kept_of_file[] = {
    SYS_read, SYS_pread64, SYS_readv, SYS_preadv, SYS_lseek, SYS_fstat, SYS_fstatfs, SYS_getdents64, SYS_fadvise64,
    SYS_readahead, SYS_connect,
#ifdef SYS_open
    SYS_getdents,
#endif
};

/* Of a path, that follows the descriptor of a folder. */
static const uint16_t kept_of_path[] = {SYS_newfstatat, SYS_statx, SYS_faccessat, SYS_faccessat2, SYS_readlinkat};

/* Of a path that is their first argument. */
static const uint16_t kept_of_plain_path[] = {
    SYS_chdir, SYS_statfs, SYS_getxattr, SYS_lgetxattr, SYS_listxattr, SYS_llistxattr,
#ifdef SYS_open
    SYS_stat, SYS_lstat, SYS_access, SYS_readlink,
#endif
};

static int is_one_of(long number, const uint16_t *list, size_t bytes) {
  for (size_t i = 0; i < bytes / sizeof *list; i++)
    if (list[i] == number) return 1;
  return 0;
}

#define IS_ONE_OF(LIST) is_one_of(c->number, LIST, sizeof LIST)

/* Files. */

/* What the prologue has opened is not the input. */
static int is_file_kept(long number) { return ffuzz_opened_as((int)number) != NULL; }

/* What the kernel tells there is the same in each run. It is asked by the absolute path. */
static int is_told_to_all(const char *path) {
  static const char *const files[] = {"/proc/self/maps",  "/proc/self/auxv", "/proc/self/cmdline", "/proc/cpuinfo",
                                      "/proc/filesystems", "/proc/version"};
  static const char folder[] = "/proc/sys/";
  size_t i = 0;
  while (folder[i] && path[i] == folder[i]) i++;
  if (!folder[i]) return 1;
  for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
    for (i = 0; path[i] && path[i] == files[f][i];) i++;
    if (path[i] == files[f][i]) return 1;
  }
  return 0;
}

static int is_output(long number) {
  struct file_id id;
  return (number == 1 || number == 2) && ffuzz_identify(number, "", &id) && !ffuzz_is_input(&id);
}

/* One that is not there stays so. */
static int is_path_kept(long folder, const char *path) {
  struct file_id id, told;
  if (!path) return 0; /* some calls take that for the folder itself */
  if (!ffuzz_identify(folder, path, &id)) return 1;
  /* What the kernel tells in /proc is not the same in all runs. */
  if (ffuzz_identify(AT_FDCWD, "/proc", &told) && id.major == told.major && id.minor == told.minor)
    return path[0] ? is_told_to_all(path) : is_file_kept(folder);
  return !ffuzz_is_input(&id);
}

static int is_open_kept(long folder, const char *path, long flags) {
  struct file_id id;
  if (flags & ~(long)HARMLESS_FLAGS || !is_path_kept(folder, path)) return 0;
  return !ffuzz_identify(folder, path, &id) || S_ISREG(id.mode) || S_ISDIR(id.mode);
}

/* What kind of file a descriptor is, also that of the input, is the same in each run: is it a terminal? */
static int is_control_kept(const struct call *c) {
  long what = c->a[1];
  if (c->number == SYS_ioctl) return what == TCGETS || what == TIOCGWINSZ;
  if (what == F_SETFL) return is_output((int)c->a[0]); /* all runs share it, also those by fork */
  return what == F_GETFD || what == F_GETFL || (what == F_SETFD && is_file_kept(c->a[0]));
}

/* Settings of the process, which each run begins with. */

/* Limits that the snapshot does not need: not those on memory, files and descriptors. That on processor time would be
 * used up by many runs together. */
static int is_limit_kept(const struct call *c) {
  long which = c->a[0];
  if (c->number == SYS_prlimit64) {
    if (!c->a[2]) return 1;
    if (c->a[0] && c->a[0] != CALL(getpid)) return 0;
    which = c->a[1];
  }
  return which == RLIMIT_CORE || which == RLIMIT_NPROC || which == RLIMIT_MEMLOCK ||
         which == RLIMIT_SIGPENDING || which == RLIMIT_MSGQUEUE || which == RLIMIT_NICE || which == RLIMIT_RTPRIO;
}

static int is_option_kept(long option) {
  return option == PR_SET_NAME || option == PR_GET_NAME || option == PR_GET_DUMPABLE || option == PR_GET_KEEPCAPS ||
         option == PR_GET_NO_NEW_PRIVS || option == PR_CAPBSET_READ || option == PR_SET_TIMERSLACK ||
         option == PR_GET_TIMERSLACK;
}

/* Memory. */

static int is_range_kept(long start, long length) {
  return !ffuzz_is_own((uint64_t)start, (uint64_t)start + (uint64_t)length);
}

static int is_map_kept(const struct call *c) {
  long rights = c->a[2], flags = c->a[3];
  int is_shared = (flags & MAP_TYPE) != MAP_PRIVATE;
  if (flags & MAP_GROWSDOWN || (is_shared && (rights & PROT_WRITE || flags & MAP_ANONYMOUS))) return 0;
  if (!(flags & MAP_ANONYMOUS) && !is_file_kept(c->a[4])) return 0;
  return !(flags & MAP_FIXED) || is_range_kept(c->a[0], c->a[1]);
}

/* Others may leave marks that are no page. */
static int is_advice_kept(long advice) {
  return (advice >= MADV_NORMAL && advice <= MADV_DONTNEED) || advice == MADV_FREE ||
         (advice >= MADV_HUGEPAGE && advice <= MADV_DODUMP);
}

static int is_kept(const struct call *c) {
  if (IS_ONE_OF(kept)) return 1;
  if (IS_ONE_OF(kept_of_file) && is_file_kept(c->a[0])) return 1;
  if (IS_ONE_OF(kept_of_path)) return is_path_kept((int)c->a[0], (const char *)c->a[1]);
  if (IS_ONE_OF(kept_of_plain_path)) return is_path_kept(AT_FDCWD, (const char *)c->a[0]);
  switch (c->number) {
    case SYS_mmap: return is_map_kept(c);
    case SYS_madvise: return is_advice_kept(c->a[2]) && is_range_kept(c->a[0], c->a[1]);
    case SYS_munmap:
    case SYS_mprotect: return is_range_kept(c->a[0], c->a[1]);
    case SYS_mremap: return !(c->a[3] & ~MREMAP_MAYMOVE) && is_range_kept(c->a[0], c->a[1]);
    case SYS_rt_sigaction: return c->a[0] != SIGSYS;
    case SYS_mlock:
    case SYS_mlock2:
    case SYS_munlock: return is_range_kept(c->a[0], c->a[1]);
    case SYS_setuid:
    case SYS_setgid:
    case SYS_setreuid:
    case SYS_setregid:
    case SYS_setresuid:
    case SYS_setresgid:
    case SYS_setgroups: return ffuzz_call_changes_nothing(c); /* another user may not make snapshots */
    case SYS_prlimit64:
    case SYS_setrlimit: return is_limit_kept(c);
    case SYS_setpriority: return c->a[0] == PRIO_PROCESS && (!c->a[1] || c->a[1] == CALL(getpid));
    case SYS_prctl: return is_option_kept(c->a[0]);
    case SYS_futex: return (c->a[1] & FUTEX_CMD_MASK) == FUTEX_WAKE;
    case SYS_fstat:
    case SYS_write:
    case SYS_writev: return is_output((int)c->a[0]);
    case SYS_ioctl:
    case SYS_fcntl: return is_control_kept(c);
    case SYS_openat: return is_open_kept((int)c->a[0], (const char *)c->a[1], c->a[2]);
    case SYS_socket: return c->a[0] == AF_UNIX;
    case SYS_close: return is_file_kept(c->a[0]);
#ifdef SYS_open
    case SYS_open: return is_open_kept(AT_FDCWD, (const char *)c->a[0], c->a[1]);
#endif
  }
  return 0;
}

static int opens(const struct call *c) {
#ifdef SYS_open
  if (c->number == SYS_open) return 1;
#endif
  return c->number == SYS_openat || c->number == SYS_socket || ffuzz_server_opens(c);
}

static int maps(const struct call *c) { return c->number == SYS_mmap || c->number == SYS_mremap; }

static int is_full(const struct call *c) {
  const struct saved *saved = ffuzz_saved;
  return (opens(c) && saved->opened_count == MOST_OPENED) || (maps(c) && saved->mapped_count == MOST_MAPPED);
}

/* What is unmapped is not there for a run to change; what is moved is as old as it was. */
static void note_mapping(const struct call *c, uint64_t result) {
  struct saved *saved = ffuzz_saved;
  uint64_t start = (uint64_t)c->a[0], end = start + round_up((uint64_t)c->a[1]);
  uint32_t calls = saved->prologue;
  for (uint32_t i = saved->mapped_count; c->number != SYS_mmap && i-- > 0;) {
    if (saved->mapped[i].start < start || saved->mapped[i].end > end) continue;
    if (saved->mapped[i].calls < calls) calls = saved->mapped[i].calls;
    saved->mapped[i] = saved->mapped[--saved->mapped_count];
  }
  if (c->number == SYS_munmap) return;
  uint64_t length = round_up((uint64_t)(c->number == SYS_mmap ? c->a[1] : c->a[2]));
  saved->mapped[saved->mapped_count++] = (struct mapped){result, result + length, calls};
}

static void forget_opened(uint64_t first, uint64_t last) {
  struct saved *saved = ffuzz_saved;
  for (uint32_t i = saved->opened_count; i-- > 0;)
    if ((uint64_t)saved->opened[i].number >= first && (uint64_t)saved->opened[i].number <= last)
      saved->opened[i] = saved->opened[--saved->opened_count];
}

static void note_opened(const struct call *c, int number) {
  struct saved *saved = ffuzz_saved;
  const struct opened *of = ffuzz_server_opens(c) ? ffuzz_opened_as((int)c->a[0]) : NULL;
  int is_file = of ? of->is_file : c->number != SYS_socket;
  forget_opened((uint64_t)number, (uint64_t)number);
  saved->opened[saved->opened_count++] = (struct opened){number, saved->prologue, is_file, 0};
}

static void note(const struct call *c, long result) {
  int has_failed = result < 0 && result > -4096;
  if (opens(c) && !has_failed) note_opened(c, (int)result);
  if ((maps(c) || c->number == SYS_munmap) && !has_failed) note_mapping(c, (uint64_t)result);
  if (c->number == SYS_close) forget_opened((uint32_t)c->a[0], (uint32_t)c->a[0]);
  if (c->number == SYS_close_range) forget_opened((uint32_t)c->a[0], (uint32_t)c->a[1]);
  ffuzz_saved->prologue++;
}

static long make(const struct call *c) {
  int number = (int)c->a[0];
  if (c->number == SYS_close && number >= OWN_FIRST && number <= OWN_LAST) return -EBADF;
  if (c->number != SYS_close_range) return perform(c);
  ffuzz_close_range((uint32_t)c->a[0], (uint32_t)c->a[1]);
  return 0;
}

/* A socket cannot be opened anew for each run: they have to begin before it. */
static void refuse_sockets(void) {
  uint32_t calls = UINT32_MAX;
  for (uint32_t i = 0; i < ffuzz_saved->opened_count; i++) {
    const struct opened *opened = &ffuzz_saved->opened[i];
    if (!opened->is_file && opened->calls < calls) calls = opened->calls;
  }
  if (calls < UINT32_MAX) ffuzz_give_up(FFUZZ_WHY_PROLOGUE, calls);
}

/* Changes the mask that the handler's return will set. SIGSYS stays possible, or the next call would end the process. */
static long changes_mask(const struct call *c) {
  uint64_t *mask = (void *)&c->at->uc_sigmask, now = 0;
  CALL(rt_sigprocmask, SIG_SETMASK, mask, NULL, sizeof *mask);
  long error = perform(c);
  CALL(rt_sigprocmask, SIG_BLOCK, NULL, &now, sizeof now);
  *mask = now & ~((uint64_t)1 << (SIGSYS - 1));
  return error;
}

/* The handler's return sets the stack to what its frame says. */
static long changes_stack(const struct call *c) {
  long error = perform(c);
  CALL(sigaltstack, NULL, &c->at->uc_stack);
  return error;
}

static void stop(void) {
  CALL(prctl, DISPATCH, 0 /* off */, 0, 0, 0);
  ffuzz_saved->is_starting = 0;
  refuse_sockets();
  ffuzz_snapshot_take();
}

HIDDEN void ffuzz_prologue_stops(void) {
  if (ffuzz_saved->is_starting) stop();
}

static void on_call(int signal_number, siginfo_t *info, void *context) {
  struct call c = trapped_call(info, context);
  const struct saved *saved = ffuzz_saved;
  (void)signal_number;
  if (info->si_code != CODE_DISPATCHED) ffuzz_give_up(FFUZZ_WHY_SIGNAL, SIGSYS);
  int is_over = saved->prologue >= ffuzz_runs->prologue || info->si_arch != MACHINE_ARCH || is_full(&c);
  if (!is_over && c.number == SYS_rt_sigreturn) {
    /* Of a handler of the program's own: our copy of that call finds the same stack. */
    ffuzz_saved->prologue++;
    trapped_goes_on(c.at, ffuzz_signal_return);
    return;
  }
  if (!is_over && c.number == SYS_rt_sigprocmask) {
    ffuzz_saved->prologue++;
    trapped_returns(c.at, changes_mask(&c));
    return;
  }
  if (!is_over && c.number == SYS_sigaltstack) {
    ffuzz_saved->prologue++;
    trapped_returns(c.at, changes_stack(&c));
    return;
  }
  if (!is_over && (is_kept(&c) || ffuzz_server_keeps(&c))) {
    if (ffuzz_server_changes_user(&c)) ffuzz_memory_open();
    long result = make(&c);
    note(&c, result);
    trapped_returns(c.at, result);
    return;
  }

  trapped_again(c.at, c.number);
  stop();
}

static int identify_input(void) {
  long file = 0;
  if (ffuzz_input->kind == FFUZZ_INPUT_NONE) return 0;
  if (ffuzz_input->kind == FFUZZ_INPUT_NET) return 1;
  if (ffuzz_input->kind == FFUZZ_INPUT_FILE)
    file = CALL(openat, AT_FDCWD, ffuzz_input->path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  int is_known = file >= 0 && ffuzz_identify(file, "", &ffuzz_saved->input);
  if (file > 0) CALL(close, file);
  return is_known;
}

/* Then the first call would end the process. */
static int is_trap_blocked(void) {
  uint64_t blocked = 0;
  CALL(rt_sigprocmask, SIG_BLOCK, NULL, &blocked, sizeof blocked);
  return blocked >> (SIGSYS - 1) & 1;
}

HIDDEN int ffuzz_prologue_begins(void) {
  if (!ffuzz_runs->prologue || !identify_input() || is_trap_blocked()) return 0;
  ffuzz_handle_traps(on_call);
  ffuzz_saved->is_starting = 1;
  return !CALL(prctl, DISPATCH, 1 /* on */, ffuzz_kernel, ffuzz_kernel_end - (const char *)(uintptr_t)ffuzz_kernel, NULL);
}
#endif
