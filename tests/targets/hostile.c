/* Does harm to its surroundings, in the way that its first argument names, on an input that begins
 * with 'Q'. The second argument is a file that remembers what is done only once. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int is(const char *how, const char *name) { return !strcmp(how, name); }

static int first_time(const char *mark) {
  int file = open(mark, O_CREAT | O_EXCL | O_WRONLY, 0600);
  if (file < 0) return 0;
  close(file);
  return 1;
}

/* All memory that is shared with the fuzzer: the channel, header and maps. */
static void scribble(int from_page, int value) {
  FILE *maps = fopen("/proc/self/maps", "r");
  char line[512];
  uintptr_t start, end;
  while (fgets(line, sizeof line, maps)) {
    if (!strstr(line, "ffuzz-channel") || sscanf(line, "%lx-%lx", &start, &end) != 2) continue;
    for (uintptr_t at = start; at < end; at += 4096)
      if (at - start >= (uintptr_t)from_page * 4096) memset((void *)at, value, 4096);
  }
  fclose(maps);
}

static void fork_many(void) {
  for (int i = 0; i < 3; i++)
    if (fork() == 0) _exit(i);
}

static void leave_child(void) {
  if (fork() == 0)
    for (;;) pause();
}

int main(int argc, char **argv) {
  char data[64] = {0};
  const char *how = argv[1], *mark = argc > 2 ? argv[2] : "";
  if (is(how, "stubborn")) signal(SIGTERM, SIG_IGN);
  ssize_t n = read(0, data, sizeof data);
  if (n < 1 || data[0] != 'Q') return 0;
  if (is(how, "kill-once") && first_time(mark)) kill(getppid(), SIGKILL);
  if (is(how, "kill-always")) kill(getppid(), SIGKILL);
  if (is(how, "stop-once") && first_time(mark)) kill(getppid(), SIGSTOP);
  if (is(how, "scribble")) scribble(0, 0xff);
  if (is(how, "scribble-maps")) scribble(1, data[1]);
  if (is(how, "close")) for (int fd = 0; fd < 1024; fd++) close(fd);
  if (is(how, "fork")) fork_many();
  if (is(how, "leave")) leave_child();
  if (is(how, "stubborn")) for (;;) pause();
  return 0;
}
