/* What a program may do while it is followed, by the first letter of its input. It aborts when something
   came out otherwise than without a tracer. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

volatile int sum, handled;

__attribute__((noinline)) static void left(int times) {
  for (int i = 0; i < times; i++) sum += i;
}

__attribute__((noinline)) static void right(int times) {
  for (int i = 0; i < times; i++) sum -= i;
  if (times > 100) sum = 0; /* never */
}

static void handler(int number) { handled = number; }

static void *thread(void *argument) {
  right(5);
  return argument;
}

static void end_of(pid_t child, int expected) {
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || status != expected) abort();
}

static void start_thread(void) {
  pthread_t one, other;
  if (pthread_create(&one, 0, thread, &sum) || pthread_create(&other, 0, thread, &sum)) abort();
  void *result = 0;
  pthread_join(one, &result);
  pthread_join(other, 0);
  if (result != &sum) abort();
}

static void start_process(void) {
  pid_t child = fork();
  if (child == 0) {
    right(3);
    _exit(7);
  }
  end_of(child, 7 << 8);
}

static void start_program(void) {
  pid_t child = vfork();
  if (child == 0) {
    execl("/bin/sh", "sh", "-c", "exit 5", (char *)0);
    _exit(1);
  }
  end_of(child, 5 << 8);
  if (system("exit 3") != 3 << 8) abort();
}

static void signals(void) {
  int numbers[] = {SIGUSR1, SIGCHLD, SIGALRM};
  for (int i = 0; i < 3; i++) {
    signal(numbers[i], handler);
    raise(numbers[i]);
    if (handled != numbers[i]) abort();
  }
}

/* In a session of its own: it outlives this process. */
static void leave_daemon(void) {
  if (fork() == 0) {
    setsid();
    for (;;) sum++;
  }
}

static void many(void) {
  for (int i = 0; i < 400; i++)
    if (fork() == 0) pause();
  while (wait(0) > 0) {}
}

static void *crowd(void *argument) {
  right(100);
  return argument;
}

/* At the same places at the same time. */
static void start_crowd(void) {
  pthread_t all[4];
  for (int i = 0; i < 4; i++)
    if (pthread_create(&all[i], 0, crowd, 0)) abort();
  for (int i = 0; i < 4; i++) pthread_join(all[i], 0);
}

#ifndef LINE
#define LINE 64
#endif

int main(int argc, char **argv) {
  char line[LINE] = {0};
  FILE *file = argc > 1 ? fopen(argv[1], "r") : stdin;
  if (!file || !fgets(line, sizeof line, file)) return 1;
  switch (line[0]) {
    case 'a': left((int)strlen(line)); break;
    case 'b': right((int)strlen(line)); break;
    case 'c': abort();
    case 'd': leave_daemon(); break;
    case 'f': start_process(); break;
    case 'l': for (;;) sum++;
    case 'm': many(); break;
    case 'o': if (!dlopen("libm.so.6", RTLD_NOW)) abort(); break;
    case 'p': if (ptrace(PTRACE_TRACEME, 0, 0, 0) != -1) abort(); break;
    case 's': signals(); break;
    case 't': start_thread(); break;
    case 'v': start_program(); break;
    case 'z': raise(SIGSTOP); break; /* only a tracer can continue it */
    case 'y': start_crowd(); break;
    case 'x': execl("/bin/echo", "echo", "x", (char *)0); abort();
  }
  return 0;
}
