/* A startup that sets what each run then finds: signals that are blocked, limits, a name. Each thing that is not so shows
 * in the edges, and so does what stands in the input. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile int complaints, handled;

static char stack[65536] __attribute__((aligned(4096)));

static void on_signal(int number) { handled += number; }

/* What the kernel says of this process is what it says to each run. */
static int lines_of(const char *path) {
  int lines = 0, c;
  FILE *file = fopen(path, "r");
  while (file && (c = getc(file)) != EOF) lines += c == '\n';
  if (file) fclose(file);
  return lines;
}

int main(void) {
  char text[16] = "", name[16] = "";
  sigset_t blocked, now;
  struct rlimit core = {0, 0};
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGINT);
  sigprocmask(SIG_BLOCK, &blocked, NULL);
  sigfillset(&blocked);
  sigprocmask(SIG_BLOCK, &blocked, &now); /* as libraries do it for a moment */
  sigprocmask(SIG_SETMASK, &now, NULL);
  signal(SIGUSR1, on_signal);
  if (setgid(getgid()) || setuid(getuid())) complaints++;
  if (setrlimit(RLIMIT_CORE, &core) || setpriority(PRIO_PROCESS, 0, 0)) complaints++;
  if (prctl(PR_SET_NAME, "settled")) complaints++;
  for (int i = 0; i < 20; i++) getppid();
  stack_t other = {.ss_sp = stack, .ss_size = sizeof stack}, set;
  if (sigaltstack(&other, NULL) || sigaltstack(NULL, &set) || set.ss_sp != stack) complaints++;
  if (mlock(stack, sizeof stack) || fcntl(1, F_SETFL, fcntl(1, F_GETFL) | O_APPEND)) complaints++;
  int lines = lines_of("/proc/self/maps");
  for (int i = 0; i < lines; i++) handled = 0; /* one more or less is seen */
  ssize_t length = read(0, text, sizeof text - 1);
  sigaltstack(NULL, &set);
  if (set.ss_sp != stack || set.ss_flags) complaints++;
  sigprocmask(SIG_BLOCK, NULL, &now);
  if (!sigismember(&now, SIGINT) || sigismember(&now, SIGTERM)) complaints++;
  prctl(PR_GET_NAME, name);
  if (strcmp(name, "settled")) complaints++;
  if (length > 0 && text[0] == 'u') raise(SIGUSR1);
  if (handled) puts("handled");
  if (complaints) puts("complaint");
  return length > 2 && text[1] == 'x';
}
