/* The loop and the fork server of AFL++ 4.20 and newer: outside a fork server the loop ends after one input.
 * Crashes on 'B' if the process got an 'A' before, and on 'C' in any case. Reads the file on its command line, or
 * standard input. */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int is_connected;
static volatile int seen;

static void give_up(const char *why) {
  dprintf(2, "%s\n", why);
  _exit(1);
}

__attribute__((constructor)) static void serve(void) {
  uint32_t hello = 0x41464c01, answer = 0, killed = 0;
  uint32_t options[3] = {1, 65536, hello};
  int child = -1, status = 0, is_stopped = 0;
  if (write(199, &hello, 4) != 4) return;
  if (read(198, &answer, 4) != 4 || answer != ~hello) give_up("wrong forkserver message from AFL++ tool");
  if (write(199, options, sizeof options) != sizeof options) _exit(1);
  is_connected = 1;
  for (;;) {
    if (read(198, &killed, 4) != 4) give_up("read from AFL++ tool");
    if (is_stopped && killed) {
      is_stopped = 0;
      waitpid(child, &status, 0);
    }
    if (is_stopped) {
      kill(child, SIGCONT);
      is_stopped = 0;
    } else if (!(child = fork())) {
      close(198);
      close(199);
      return;
    }
    if (write(199, &child, 4) != 4) _exit(1);
    waitpid(child, &status, getenv("__AFL_PERSISTENT") ? WUNTRACED : 0);
    is_stopped = WIFSTOPPED(status);
    if (write(199, &status, 4) != 4) _exit(1);
  }
}

static int loop(unsigned most) {
  static unsigned left;
  if (!left) {
    left = is_connected ? most : 1;
    return 1;
  }
  if (!--left) return 0;
  raise(SIGSTOP);
  return 1;
}

__attribute__((noinline)) static void needs_another(void) {
  if (seen) abort();
}
__attribute__((noinline)) static void needs_none(void) { *(volatile char *)1 = 1; }

int main(int argc, char **argv) {
  static uint8_t data[64];
  while (loop(1000)) {
    int file = argc > 1 ? open(argv[1], O_RDONLY) : 0;
    ssize_t size = read(file, data, sizeof data);
    if (file) close(file);
    switch (size > 0 ? data[0] : 0) {
      case 'A': seen = 1; break;
      case 'B': needs_another(); break;
      case 'C': needs_none(); break;
    }
  }
  return 0;
}
