/* What a server does before it waits for its first message (ffuzz --net): it becomes another user, closes what it has
 * inherited, writes its files, and asks the kernel about the machine. All runs find these done, as children of fork()
 * would do them again and again with the same result. The input has no part in it: it comes from the stand-in, which
 * has no file. In a run these calls stay refused. The rules for this code are in state.h. */
#define _GNU_SOURCE
#include "snapshot/server.h"

#if FFUZZ_HAS_SNAPSHOTS
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "runs.h"
#include "snapshot/made.h"

/* What older headers lack. */
#define SET_DISPATCH 59 /* PR_SET_SYSCALL_USER_DISPATCH */

/* Settings of the process, whatever they are; and questions with the same answer in each run, such as whether inetd
 * has started it. */
static const uint16_t settings[] = {
    SYS_setuid,  SYS_setgid, SYS_setreuid, SYS_setregid, SYS_setresuid, SYS_setresgid, SYS_setgroups, SYS_setfsuid,
    SYS_setfsgid, SYS_capset, SYS_setsid, SYS_setpgid, SYS_setpriority, SYS_sched_setaffinity, SYS_getrandom,
    SYS_getsockopt, SYS_getsockname, SYS_getpeername, SYS_wait4, SYS_mlockall, SYS_munlockall, SYS_membarrier,
};

/* Of a path that is their first argument, or that follows a folder. They are done once for all runs. */
static const uint16_t of_paths[] = {
    SYS_unlinkat, SYS_mkdirat, SYS_fchmodat, SYS_fchownat, SYS_renameat, SYS_renameat2, SYS_symlinkat, SYS_linkat,
    SYS_utimensat, SYS_truncate, SYS_newfstatat, SYS_statx, SYS_faccessat, SYS_faccessat2, SYS_readlinkat, SYS_statfs,
#ifdef SYS_open
    SYS_unlink, SYS_mkdir, SYS_rmdir, SYS_chmod, SYS_chown, SYS_lchown, SYS_rename, SYS_symlink, SYS_link, SYS_stat,
    SYS_lstat, SYS_access, SYS_readlink,
#endif
};

/* Of the descriptor that is their first argument, which the prologue has opened. Not the setting of flags and locks,
 * which another process, or the next run, would meet. */
static const uint16_t of_files[] = {
    SYS_write, SYS_writev, SYS_pwrite64, SYS_ftruncate, SYS_fallocate, SYS_fsync, SYS_fdatasync, SYS_fchmod, SYS_fchown,
    SYS_fchdir, SYS_bind, SYS_listen, SYS_sendto, SYS_sendmsg, SYS_sendmmsg, SYS_recvfrom, SYS_recvmsg, SYS_recvmmsg,
    SYS_setsockopt, SYS_shutdown, SYS_getdents64,
};

static int is_one_of(long number, const uint16_t *list, size_t bytes) {
  for (size_t i = 0; i < bytes / sizeof *list; i++)
    if (list[i] == number) return 1;
  return 0;
}

#define IS_ONE_OF(LIST) is_one_of(c->number, LIST, sizeof LIST)

static int is_own(long number) { return number >= OWN_FIRST && number <= OWN_LAST; }

/* Not a FIFO, which would wait, and not another device. */
static int is_open_kept(long folder, const char *path) {
  struct file_id id;
  if (!path) return 0;
  return !ffuzz_identify(folder, path, &id) || S_ISREG(id.mode) || S_ISDIR(id.mode) || S_ISCHR(id.mode);
}

/* A filter would stay for the snapshot's own calls. */
static int is_option_kept(long option) {
  return option != PR_SET_SECCOMP && option != SET_DISPATCH && option != PR_SET_TSC && option != PR_SET_MM;
}

/* Many runs together would use up a limit on processor time. */
static int is_limit_kept(const struct call *c) {
  long which = c->number == SYS_setrlimit ? c->a[0] : c->a[1];
  return which != RLIMIT_CPU && (c->number == SYS_setrlimit || !c->a[0] || c->a[0] == CALL(getpid));
}

/* A timer that is stopped. */
static int is_timer_kept(const struct call *c) {
  const struct itimerval *value = (const void *)c->a[1];
  return value && !value->it_value.tv_sec && !value->it_value.tv_usec;
}

HIDDEN int ffuzz_server_changes_user(const struct call *c) {
  static const uint16_t users[] = {SYS_setuid, SYS_setreuid, SYS_setresuid, SYS_setfsuid, SYS_capset};
  return IS_ONE_OF(users);
}

HIDDEN int ffuzz_server_opens(const struct call *c) {
  if (ffuzz_input->kind != FFUZZ_INPUT_NET) return 0;
#ifdef SYS_open
  if (c->number == SYS_dup2) return 1;
#endif
  return c->number == SYS_dup || c->number == SYS_dup3;
}

HIDDEN int ffuzz_server_keeps(const struct call *c) {
  if (ffuzz_input->kind != FFUZZ_INPUT_NET) return 0;
  if (IS_ONE_OF(settings) || IS_ONE_OF(of_paths)) return 1;
  if (IS_ONE_OF(of_files)) return ffuzz_opened_as((int)c->a[0]) != NULL;
  switch (c->number) {
    case SYS_openat: return is_open_kept((int)c->a[0], (const char *)c->a[1]);
#ifdef SYS_open
    case SYS_open: return is_open_kept(AT_FDCWD, (const char *)c->a[0]);
    case SYS_dup2:
#endif
    case SYS_dup3: return ffuzz_opened_as((int)c->a[0]) && !is_own((int)c->a[1]);
    case SYS_dup: return ffuzz_opened_as((int)c->a[0]) != NULL;
    case SYS_close: return 1; /* ours are left open: prologue.c */
    case SYS_socket: return 1;
    case SYS_prctl: return is_option_kept(c->a[0]);
    case SYS_prlimit64:
    case SYS_setrlimit: return is_limit_kept(c);
    case SYS_setitimer: return is_timer_kept(c);
    case SYS_close_range: return !c->a[2];
  }
  return 0;
}
#endif
