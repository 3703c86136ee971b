/* What gets in the way of breakpoints; the argument says what. Prints what it has seen, which must be the same with
 * and without them. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int got;

static void count(int number) { got += number; }

__attribute__((noinline)) static int work(int x) {
  if (x > 3) return x * 3;
  if (x > 1) return x + 1;
  return 0;
}

static void *in_thread(void *argument) { return (void *)(long)work(*(int *)argument); }

static int is(const char *word, const char *wanted) { return !strcmp(word, wanted); }

int main(int argc, char **argv) {
  int error = errno;
  const char *what = argc > 1 ? argv[1] : "";
  sigset_t all;
  sigfillset(&all);
  if (is(what, "blocks")) sigprocmask(SIG_SETMASK, &all, NULL);
  if (is(what, "blocks-in-thread")) pthread_sigmask(SIG_SETMASK, &all, NULL);
  if (is(what, "blocks-by-itself")) {
    unsigned long every = ~0ul;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &every, NULL, 8);
  }
  if (is(what, "blocks-in-handler")) {
    struct sigaction action = {.sa_handler = count, .sa_mask = all};
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
  }
  if (is(what, "handles")) {
    struct sigaction action = {.sa_handler = count}, old;
    sigaction(SIGTRAP, &action, NULL);
    sigaction(SIGTRAP, NULL, &old);
    raise(SIGTRAP);
    __asm__ volatile("int3");
    printf("%d %d\n", got, old.sa_handler == count);
  }
  if (is(what, "ignores")) {
    printf("%d\n", signal(SIGTRAP, SIG_IGN) == SIG_DFL);
    raise(SIGTRAP);
  }
  if (is(what, "holds")) printf("%d\n", sighold(SIGTRAP));
  if (is(what, "masks")) {
    printf("%d ", sigblock(sigmask(SIGHUP)));
    printf("%d ", sigsetmask(sigmask(SIGUSR1) | sigmask(SIGTRAP)));
    sigset_t now;
    sigprocmask(SIG_BLOCK, NULL, &now);
    printf("%d %d\n", sigismember(&now, SIGHUP), sigismember(&now, SIGUSR1));
  }
  if (is(what, "sets")) {
    printf("%d ", sigset(SIGTRAP, count) == SIG_DFL);
    printf("%d ", sigset(SIGUSR1, count) == SIG_DFL);
    printf("%d ", sigset(SIGUSR1, SIG_HOLD) == count);
    raise(SIGUSR1);
    printf("%d ", got);
    printf("%d ", sigset(SIGUSR1, count) == SIG_HOLD);
    raise(SIGTRAP);
    printf("%d %d\n", got, sigset(SIGTRAP, SIG_IGN) == count);
  }
  if (is(what, "no-trap")) {
    printf("%d\n", sigignore(SIGTRAP));
    raise(SIGTRAP);
  }
  if (is(what, "traps")) __asm__ volatile("int3");
  if (is(what, "own-stack")) {
    stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
    sigaltstack(&stack, NULL);
    struct sigaction action = {.sa_handler = count, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
  }
  if (is(what, "vfork")) {
    int status = 0;
    pid_t child = vfork();
    if (!child) _exit(work(argc + 5));
    waitpid(child, &status, 0);
    printf("%d\n", WEXITSTATUS(status));
  }
  if (is(what, "fork")) {
    int status = 0;
    pid_t child = fork();
    if (!child) _exit(work(argc + 5));
    waitpid(child, &status, 0);
    printf("%d\n", WEXITSTATUS(status));
  }
  if (is(what, "system")) printf("%d\n", system("printenv LD_PRELOAD; echo sub"));
  if (is(what, "threads")) {
    pthread_t threads[8];
    long sum = 0;
    for (int i = 0; i < 8; i++) pthread_create(&threads[i], NULL, in_thread, &argc);
    for (int i = 0; i < 8; i++) {
      void *result;
      pthread_join(threads[i], &result);
      sum += (long)result;
    }
    printf("%ld\n", sum);
  }
  if (is(what, "segv")) *(volatile char *)0 = 1;
  if (is(what, "abort")) abort();
  printf("%d %d %d\n", got, work(argc), error);
  return work(argc) & 7;
}
