/* Which system calls of a run are trapped: all but those that change nothing that outlives it, or only what other
 * processes see as well. See calls.c for the others.
 *
 * seccomp_filter.rst of the kernel, seccomp(2). The rules for this code are in state.h. */
#define _GNU_SOURCE
#include "snapshot/filter.h"

#if FFUZZ_HAS_SNAPSHOTS
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "snapshot/calls.h"

#define MOST_INSTRUCTIONS 512u
#define SA_RESTORER 0x04000000
#ifndef SECCOMP_FILTER_FLAG_SPEC_ALLOW
#define SECCOMP_FILTER_FLAG_SPEC_ALLOW 4
#endif

/* Reads, waits, and what is said to files, sockets and other processes: a child of fork() does all that
 * in the same way. What they open is closed behind the run. */
static const uint16_t harmless[] = {
    SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_pread64, SYS_pwrite64, SYS_preadv, SYS_pwritev, SYS_preadv2,
    SYS_pwritev2, SYS_lseek, SYS_openat2, SYS_fstat, SYS_newfstatat, SYS_statx, SYS_statfs,
    SYS_fstatfs, SYS_faccessat, SYS_faccessat2, SYS_readlinkat, SYS_getdents64, SYS_getcwd, SYS_ioctl, SYS_fsync,
    SYS_fdatasync, SYS_sync, SYS_syncfs, SYS_ftruncate, SYS_fallocate, SYS_fadvise64, SYS_readahead,
    SYS_fchmod, SYS_fchown, SYS_sendfile, SYS_splice, SYS_tee, SYS_vmsplice, SYS_copy_file_range, SYS_utimensat,
    SYS_getxattr, SYS_lgetxattr, SYS_fgetxattr, SYS_listxattr, SYS_llistxattr, SYS_flistxattr,
    SYS_dup, SYS_pipe2, SYS_eventfd2, SYS_memfd_create, SYS_signalfd4, SYS_timerfd_create, SYS_timerfd_settime,
    SYS_timerfd_gettime, SYS_inotify_init1, SYS_inotify_add_watch, SYS_inotify_rm_watch, SYS_epoll_create1,
    SYS_epoll_ctl, SYS_epoll_pwait, SYS_ppoll, SYS_pselect6,
    SYS_socket, SYS_socketpair, SYS_connect, SYS_accept, SYS_accept4, SYS_listen, SYS_getsockname,
    SYS_getpeername, SYS_setsockopt, SYS_getsockopt, SYS_shutdown, SYS_sendto, SYS_sendmsg, SYS_sendmmsg,
    SYS_recvfrom, SYS_recvmsg, SYS_recvmmsg,
    SYS_getpid, SYS_gettid, SYS_getppid, SYS_getpgid, SYS_getsid, SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid,
    SYS_getresuid, SYS_getresgid, SYS_getgroups, SYS_capget, SYS_getpriority, SYS_getrusage, SYS_getitimer, SYS_times,
    SYS_sched_getaffinity, SYS_sched_getparam, SYS_sched_getscheduler, SYS_sched_get_priority_max,
    SYS_sched_get_priority_min, SYS_sched_rr_get_interval, SYS_get_robust_list, SYS_process_vm_readv,
    SYS_gettimeofday, SYS_clock_gettime, SYS_clock_getres, SYS_clock_nanosleep, SYS_nanosleep, SYS_sched_yield,
    SYS_futex, SYS_restart_syscall, SYS_getrandom, SYS_getcpu, SYS_uname, SYS_sysinfo, SYS_msync, SYS_mincore,
    SYS_wait4, SYS_waitid, SYS_rt_sigprocmask, SYS_rt_sigreturn,
    SYS_rt_sigpending, SYS_rt_sigtimedwait, SYS_rt_sigsuspend, SYS_getrlimit,
#ifdef SYS_open /* what newer processors do not have */
    SYS_stat, SYS_lstat, SYS_access, SYS_readlink, SYS_getdents, SYS_utime, SYS_utimes, SYS_futimesat, SYS_pipe,
    SYS_eventfd, SYS_signalfd, SYS_inotify_init, SYS_epoll_create, SYS_epoll_wait, SYS_poll, SYS_select, SYS_time,
    SYS_pause, SYS_getpgrp,
#endif
};

struct program {
  struct sock_filter *at;
  struct sock_filter instructions[MOST_INSTRUCTIONS];
};

static void emit(struct program *p, uint16_t code, uint8_t yes, uint8_t no, uint32_t value) {
  if (p->at == p->instructions + MOST_INSTRUCTIONS) ffuzz_give_up(FFUZZ_WHY_FILTER, 0);
  *p->at++ = (struct sock_filter){code, yes, no, value};
}

static void load(struct program *p, uint32_t offset) { emit(p, BPF_LD | BPF_W | BPF_ABS, 0, 0, offset); }

static void let_pass(struct program *p) { emit(p, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW); }

/* Goes on with the next `yes` instructions if it is equal, else behind them. */
static void if_equal(struct program *p, uint32_t value, uint8_t instructions) {
  emit(p, BPF_JMP | BPF_JEQ | BPF_K, 0, instructions, value);
}

static void load_argument(struct program *p, int number) {
  load(p, (uint32_t)(offsetof(struct seccomp_data, args) + (size_t)number * 8));
}

/* Whoever makes it, if it is ours: the rest is trapped. */
static void trap_unless_ours(struct program *p) {
  uint64_t place = (uint64_t)ffuzz_kernel_return;
  load(p, offsetof(struct seccomp_data, instruction_pointer));
  emit(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 3, (uint32_t)place);
  load(p, offsetof(struct seccomp_data, instruction_pointer) + 4);
  if_equal(p, (uint32_t)(place >> 32), 1);
  let_pass(p);
  emit(p, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_TRAP);
}

/* Closing what the run has opened is harmless. */
static void pass_close(struct program *p) {
  uint32_t count = ffuzz_saved->descriptor_count;
  if_equal(p, SYS_close, (uint8_t)(count + 10));
  load_argument(p, 0);
  for (uint32_t i = 0; i < count; i++)
    emit(p, BPF_JMP | BPF_JEQ | BPF_K, (uint8_t)(count - i + 2), 0, (uint32_t)ffuzz_saved->descriptors[i]);
  emit(p, BPF_JMP | BPF_JGE | BPF_K, 0, 1, OWN_FIRST);
  emit(p, BPF_JMP | BPF_JGT | BPF_K, 0, 1, OWN_LAST);
  let_pass(p);
  trap_unless_ours(p);
}

/* Opening a file to read it leaves nothing behind; all else is noted (calls.c). */
static void pass_open(struct program *p, uint32_t number, int flags) {
  if_equal(p, number, 9);
  load_argument(p, flags);
  emit(p, BPF_JMP | BPF_JSET | BPF_K, 1, 0, O_CREAT | O_WRONLY | O_RDWR);
  let_pass(p);
  trap_unless_ours(p);
}

/* What it sets would stay for the next run. */
static const uint16_t setting[] = {F_SETFD, F_SETFL, F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW, F_SETLEASE};

static void pass_fcntl(struct program *p) {
  uint8_t count = sizeof setting / sizeof *setting;
  if_equal(p, SYS_fcntl, (uint8_t)(count + 8));
  load_argument(p, 1);
  for (uint8_t i = 0; i < count; i++) emit(p, BPF_JMP | BPF_JEQ | BPF_K, (uint8_t)(count - i), 0, setting[i]);
  let_pass(p);
  trap_unless_ours(p);
}

static void write_filter(struct program *p) {
  p->at = p->instructions;
  load(p, offsetof(struct seccomp_data, arch));
  if_equal(p, MACHINE_ARCH, 1);
  emit(p, BPF_JMP | BPF_JA, 0, 0, 1);
  emit(p, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_TRAP);
  load(p, offsetof(struct seccomp_data, nr));
  for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++) {
    if_equal(p, harmless[i], 1);
    let_pass(p);
  }
  pass_close(p);
  pass_fcntl(p);
  pass_open(p, SYS_openat, 2);
#ifdef SYS_open
  pass_open(p, SYS_open, 1);
#endif
  trap_unless_ours(p);
}

HIDDEN void ffuzz_handle_traps(void (*handler)(int, siginfo_t *, void *)) {
  struct kernel_action trap = {
      .handler = (uint64_t)handler,
      .flags = SA_SIGINFO | SA_NODEFER | SA_RESTORER,
      .restorer = (uint64_t)ffuzz_signal_return,
  };
  CALL(rt_sigaction, SIGSYS, &trap, NULL, sizeof(uint64_t));
}

HIDDEN void ffuzz_filter_start(void) {
  struct program *p = (void *)ffuzz_changes->text;
  _Static_assert(sizeof *p <= sizeof ffuzz_changes->text, "room for the filter");
  if (ffuzz_saved->signal_mask >> (SIGSYS - 1) & 1) ffuzz_give_up(FFUZZ_WHY_FILTER, 0);
  ffuzz_handle_traps(ffuzz_on_trap);
  write_filter(p);
  struct sock_fprog filter = {(unsigned short)(p->at - p->instructions), p->instructions};
  CALL(prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  long error = CALL(seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &filter);
  if (error) ffuzz_give_up(FFUZZ_WHY_FILTER, -error);
}
#endif
