/* A startup that sets what each run then finds: signals that are blocked, limits, a name. Each thing that is not so shows
 * in the edges, and so does what stands in the input. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile int complaints, handled;

static void on_signal(int number) { handled += number; }

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
  ssize_t length = read(0, text, sizeof text - 1);
  sigprocmask(SIG_BLOCK, NULL, &now);
  if (!sigismember(&now, SIGINT) || sigismember(&now, SIGTERM)) complaints++;
  prctl(PR_GET_NAME, name);
  if (strcmp(name, "settled")) complaints++;
  if (length > 0 && text[0] == 'u') raise(SIGUSR1);
  if (handled) puts("handled");
  if (complaints) puts("complaint");
  return length > 2 && text[1] == 'x';
}
