/* See signals.h. The functions of libc by which a program takes or blocks a signal are replaced: SIGTRAP cannot be
 * blocked, because a breakpoint would then end the process. A program that makes these system calls by itself is not
 * fit for breakpoints. */
#define _GNU_SOURCE
#include "native/signals.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "machine.h"
#include "memory.h"
#include "native/blocks.h"
#include "snapshot/state.h"

#define STACK 65536u
#define SA_RESTORER 0x04000000
#ifndef SI_KERNEL
#define SI_KERNEL 0x80
#endif

typedef int mask_function(int, const sigset_t *, sigset_t *);
typedef int action_function(int, const struct sigaction *, struct sigaction *);
typedef int suspend_function(const sigset_t *);

static mask_function *real_sigprocmask, *real_pthread_sigmask;
static action_function *real_sigaction;
static suspend_function *real_sigsuspend;

/* What the program wants to be done with its own traps. */
static struct sigaction of_program;
static int is_started;

static void find_functions(void) {
  if (real_sigaction) return;
  real_sigprocmask = (mask_function *)dlsym(RTLD_NEXT, "sigprocmask");
  real_pthread_sigmask = (mask_function *)dlsym(RTLD_NEXT, "pthread_sigmask");
  real_sigsuspend = (suspend_function *)dlsym(RTLD_NEXT, "sigsuspend");
  real_sigaction = (action_function *)dlsym(RTLD_NEXT, "sigaction");
}

/* As if there were no handler of ours. */
static void pass_on(int number, siginfo_t *info, void *context) {
  int is_handled = of_program.sa_handler != SIG_DFL && of_program.sa_handler != SIG_IGN;
  int is_sent = info->si_code <= 0;
  if (is_sent && of_program.sa_handler == SIG_IGN) return;
  if (is_handled) {
    struct sigaction handler = of_program;
    if (handler.sa_flags & (int)SA_RESETHAND) of_program.sa_handler = SIG_DFL;
    if (handler.sa_flags & SA_SIGINFO)
      handler.sa_sigaction(number, info, context);
    else
      handler.sa_handler(number);
    return;
  }
  struct kernel_action plain = {0};
  long process = CALL(getpid), thread = CALL(gettid);
  CALL(rt_sigaction, SIGTRAP, &plain, NULL, sizeof(uint64_t));
  CALL(tgkill, process, thread, SIGTRAP);
}

static void on_trap(int number, siginfo_t *info, void *context) {
  if (info->si_code != SI_KERNEL || !ffuzz_block_hit(context)) pass_on(number, info, context);
}

/* On a stack of its own, so that a program which reads below its stack finds there what it finds without us; other
 * threads have none. */
HIDDEN void ffuzz_signals_start(void) {
  find_functions();
  stack_t stack = {.ss_sp = ffuzz_pages(STACK), .ss_size = STACK}, before;
  if (!CALL(sigaltstack, NULL, &before) && before.ss_flags & SS_DISABLE) CALL(sigaltstack, &stack, NULL);
  real_sigaction(SIGTRAP, NULL, &of_program);
  struct kernel_action action = {
      .handler = (uint64_t)on_trap,
      .flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTORER,
      .restorer = (uint64_t)ffuzz_signal_return,
  };
  uint64_t trap = (uint64_t)1 << (SIGTRAP - 1);
  CALL(rt_sigaction, SIGTRAP, &action, NULL, sizeof(uint64_t));
  CALL(rt_sigprocmask, SIG_UNBLOCK, &trap, NULL, sizeof(uint64_t));
  is_started = 1;
}

static const sigset_t *without_trap(const sigset_t *set, sigset_t *room) {
  if (!set || !is_started) return set;
  *room = *set;
  sigdelset(room, SIGTRAP);
  return room;
}

int sigprocmask(int how, const sigset_t *set, sigset_t *old) {
  sigset_t room;
  find_functions();
  return real_sigprocmask(how, how == SIG_UNBLOCK ? set : without_trap(set, &room), old);
}

int pthread_sigmask(int how, const sigset_t *set, sigset_t *old) {
  sigset_t room;
  find_functions();
  return real_pthread_sigmask(how, how == SIG_UNBLOCK ? set : without_trap(set, &room), old);
}

int sigsuspend(const sigset_t *set) {
  sigset_t room;
  find_functions();
  return real_sigsuspend(without_trap(set, &room));
}

int sigaction(int number, const struct sigaction *action, struct sigaction *old) {
  find_functions();
  if (number == SIGTRAP && is_started) {
    if (old) *old = of_program;
    if (action) of_program = *action;
    return 0;
  }
  struct sigaction ours;
  if (action && is_started) {
    ours = *action;
    sigdelset(&ours.sa_mask, SIGTRAP);
    action = &ours;
  }
  return real_sigaction(number, action, old);
}

static sighandler_t set_handler(int number, sighandler_t handler, int flags) {
  struct sigaction action = {.sa_handler = handler, .sa_flags = flags}, old;
  return sigaction(number, &action, &old) ? SIG_ERR : old.sa_handler;
}

sighandler_t signal(int number, sighandler_t handler) { return set_handler(number, handler, SA_RESTART); }

sighandler_t bsd_signal(int number, sighandler_t handler) { return set_handler(number, handler, SA_RESTART); }

sighandler_t sysv_signal(int number, sighandler_t handler) {
  return set_handler(number, handler, (int)(SA_RESETHAND | SA_NODEFER));
}

sighandler_t __sysv_signal(int number, sighandler_t handler) { return sysv_signal(number, handler); }

/* The older functions of System V and BSD: libc does not call those above for them. */
static int mask_one(int how, int number, sigset_t *old) {
  sigset_t one;
  sigemptyset(&one);
  return sigaddset(&one, number) ? -1 : sigprocmask(how, &one, old);
}

int sighold(int number) { return mask_one(SIG_BLOCK, number, NULL); }

int sigignore(int number) { return set_handler(number, SIG_IGN, 0) == SIG_ERR ? -1 : 0; }

sighandler_t sigset(int number, sighandler_t handler) {
  sigset_t masked;
  struct sigaction now;
  int is_held = handler == SIG_HOLD;
  if (mask_one(is_held ? SIG_BLOCK : SIG_UNBLOCK, number, &masked) || sigaction(number, NULL, &now)) return SIG_ERR;
  if (!is_held && set_handler(number, handler, 0) == SIG_ERR) return SIG_ERR;
  return sigismember(&masked, number) == 1 ? SIG_HOLD : now.sa_handler;
}

/* Of the first 32 signals. */
static int mask_word(int how, int mask) {
  sigset_t set, old;
  int before = 0;
  sigemptyset(&set);
  for (int number = 1; number <= 32; number++)
    if ((unsigned)mask >> (number - 1) & 1) sigaddset(&set, number);
  if (sigprocmask(how, &set, &old)) return -1;
  for (int number = 1; number <= 32; number++)
    if (sigismember(&old, number) == 1) before |= (int)(1u << (number - 1));
  return before;
}

int sigblock(int mask) { return mask_word(SIG_BLOCK, mask); }

int sigsetmask(int mask) { return mask_word(SIG_SETMASK, mask); }
