#define _GNU_SOURCE
#include "net/counter.h"

#include <dlfcn.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <ucontext.h>
#include <unistd.h>

#include "net/chance.h"
#include "net/kernel.h"
#include "net/options.h"

#define MOST_WORDS 256

/* A sanitizer has a handler of its own, below libc. */
extern void __asan_init(void) __attribute__((weak));
extern void __msan_init(void) __attribute__((weak));
extern void __tsan_init(void) __attribute__((weak));

static int is_on;
static struct sigaction of_program; /* what it wants SIGSEGV to do */

#define NEXT(NAME) ((__typeof__(&NAME))dlsym(RTLD_NEXT, #NAME))

/* The length of the instruction that reads the counter; 0: it is another one. */
static int length_of_reader(const uint8_t *code) {
  if (code[0] != 0x0f) return 0;
  if (code[1] == 0x31) return 2;
  return code[1] == 0x01 && code[2] == 0xf9 ? 3 : 0;
}

static void answer(greg_t *registers, int length) {
  uint64_t now = ffuzz_net_now();
  registers[REG_RAX] = (greg_t)(uint32_t)now;
  registers[REG_RDX] = (greg_t)(now >> 32);
  if (length == 3) registers[REG_RCX] = 0;
  registers[REG_RIP] += length;
}

/* The fault comes again, as the program wants to have it. */
static void leave_to_program(int number, siginfo_t *info, void *context) {
  struct sigaction standard = {.sa_handler = SIG_DFL};
  if (of_program.sa_flags & SA_SIGINFO)
    of_program.sa_sigaction(number, info, context);
  else if (of_program.sa_handler != SIG_DFL && of_program.sa_handler != SIG_IGN)
    of_program.sa_handler(number);
  else
    NEXT(sigaction)(SIGSEGV, &standard, NULL);
}

static void on_fault(int number, siginfo_t *info, void *context) {
  greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
  /* The code can be read: it was about to be executed. */
  int is_privileged = info->si_code == SI_KERNEL;
  int length = is_privileged ? length_of_reader((const uint8_t *)registers[REG_RIP]) : 0;
  if (length)
    answer(registers, length);
  else
    leave_to_program(number, info, context);
}

static void set(int mode) {
  if (is_on) ffuzz_kernel(SYS_prctl, PR_SET_TSC, mode, 0, 0, 0, 0);
}

HIDDEN void ffuzz_net_counter_starts(void) {
  struct sigaction ours = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
  if (&__asan_init || &__msan_init || &__tsan_init) return;
  if (NEXT(sigaction)(SIGSEGV, &ours, &of_program)) return;
  is_on = 1;
  set(PR_TSC_SIGSEGV);
}

PUBLIC int sigaction(int number, const struct sigaction *new, struct sigaction *old) {
  static int (*real)(int, const struct sigaction *, struct sigaction *);
  if (!real) real = NEXT(sigaction);
  if (!is_on || number != SIGSEGV) return real(number, new, old);
  struct sigaction before = of_program;
  if (new) of_program = *new;
  if (old) *old = before;
  return 0;
}

PUBLIC sighandler_t signal(int number, sighandler_t handler) {
  if (!is_on || number != SIGSEGV) return NEXT(signal)(number, handler);
  struct sigaction new = {.sa_handler = handler, .sa_flags = SA_RESTART}, old;
  sigemptyset(&new.sa_mask);
  return sigaction(number, &new, &old) ? SIG_ERR : old.sa_handler;
}

/* Another program has no handler, and its loader reads the counter. */
#define WITH_COUNTER(TYPE, CALL)  \
  set(PR_TSC_ENABLE);             \
  TYPE result = CALL;             \
  set(PR_TSC_SIGSEGV);            \
  return result

PUBLIC int execve(const char *path, char *const words[], char *const env[]) {
  WITH_COUNTER(int, (int)REAL(execve, path, words, env));
}

PUBLIC int execv(const char *path, char *const words[]) { return execve(path, words, environ); }

PUBLIC int execvpe(const char *name, char *const words[], char *const env[]) {
  WITH_COUNTER(int, NEXT(execvpe)(name, words, env));
}

PUBLIC int execvp(const char *name, char *const words[]) { return execvpe(name, words, environ); }

#define COLLECT(FIRST)                                                             \
  char *words[MOST_WORDS + 1] = {(char *)(uintptr_t)(FIRST)};                      \
  va_list list;                                                                    \
  va_start(list, FIRST);                                                           \
  for (int i = 1; i < MOST_WORDS && words[i - 1]; i++) words[i] = va_arg(list, char *)

PUBLIC int execl(const char *path, const char *first, ...) {
  COLLECT(first);
  va_end(list);
  return execv(path, words);
}

PUBLIC int execlp(const char *name, const char *first, ...) {
  COLLECT(first);
  va_end(list);
  return execvp(name, words);
}

PUBLIC int execle(const char *path, const char *first, ...) {
  COLLECT(first);
  char *const *env = va_arg(list, char *const *);
  va_end(list);
  return execve(path, words, env);
}

PUBLIC int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                       const posix_spawnattr_t *attributes, char *const words[], char *const env[]) {
  WITH_COUNTER(int, NEXT(posix_spawn)(pid, path, actions, attributes, words, env));
}

PUBLIC int posix_spawnp(pid_t *pid, const char *name, const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *attributes, char *const words[], char *const env[]) {
  WITH_COUNTER(int, NEXT(posix_spawnp)(pid, name, actions, attributes, words, env));
}

PUBLIC int system(const char *command) { WITH_COUNTER(int, NEXT(system)(command)); }

PUBLIC FILE *popen(const char *command, const char *mode) { WITH_COUNTER(FILE *, NEXT(popen)(command, mode)); }
