/* Does harm to its surroundings, in the way that its first argument names, on an input that begins
 * with 'Q'. The second argument is a file: it remembers what is done only once, is written to, or (ways
 * that begin with "file-") holds the input. -DPERSISTENT and -DSHARED: in a loop. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef SHARED
__AFL_FUZZ_INIT();
#endif

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

/* It is nobody's child, leads a session of its own, and has another program and no variable. */
static void leave_daemon(const char *pids) {
  int status;
  pid_t parent = fork();
  if (!parent) {
    setsid();
    pid_t daemon = fork();
    if (!daemon) {
      char *nothing[] = {NULL};
      execle("/bin/sleep", "sleep", "1000", NULL, nothing);
      _exit(1);
    }
    int file = open(pids, O_CREAT | O_APPEND | O_WRONLY, 0600);
    dprintf(file, "%d\n", (int)daemon);
    _exit(0);
  }
  waitpid(parent, &status, 0);
}

static void replace_by(const char *how, const char *path) {
  if (is(how, "file-locked")) {
    chmod(path, 0);
    return;
  }
  unlink(path);
  if (is(how, "file-folder")) {
    char inside[512];
    mkdir(path, 0700);
    snprintf(inside, sizeof inside, "%s/inside", path);
    close(open(inside, O_CREAT | O_WRONLY, 0600));
  }
  if (is(how, "file-fifo")) mkfifo(path, 0600);
  if (is(how, "file-link")) symlink("victim", path);
}

static void harm(const char *how, const char *mark, const char *data, ssize_t n) {
  if (n < 1 || data[0] != 'Q') return;
  if (is(how, "kill-once") && first_time(mark)) kill(getppid(), SIGKILL);
  if (is(how, "kill-always")) kill(getppid(), SIGKILL);
  if (is(how, "stop-once") && first_time(mark)) kill(getppid(), SIGSTOP);
  if (is(how, "stop")) kill(getppid(), SIGSTOP);
  if (is(how, "trace")) ptrace(PTRACE_ATTACH, getppid(), 0, 0);
  if (is(how, "scribble")) scribble(0, 0xff);
  if (is(how, "zero")) scribble(0, 0);
  if (is(how, "scribble-maps")) scribble(1, data[1]);
  if (is(how, "close")) for (int fd = 0; fd < 1024; fd++) close(fd);
  if (is(how, "fork")) fork_many();
  if (is(how, "leave")) leave_child();
  if (is(how, "daemon")) leave_daemon(mark);
  if (is(how, "stubborn")) for (;;) pause();
  if (!strncmp(how, "file-", 5)) replace_by(how, mark);
}

int main(int argc, char **argv) {
  const char *how = argv[1], *mark = argc > 2 ? argv[2] : "";
  if (is(how, "stubborn")) signal(SIGTERM, SIG_IGN);
#ifdef SHARED
  __AFL_INIT();
  unsigned char *data = __AFL_FUZZ_TESTCASE_BUF;
  while (__AFL_LOOP(1000)) harm(how, mark, (const char *)data, __AFL_FUZZ_TESTCASE_LEN);
#else
#ifdef PERSISTENT
  while (__AFL_LOOP(1000))
#endif
  {
    char data[64] = {0};
    int input = strncmp(how, "file-", 5) ? 0 : open(mark, O_RDONLY);
    ssize_t n = read(input, data, sizeof data);
    if (input > 0) close(input);
    harm(how, mark, data, n);
  }
#endif
  return 0;
}
