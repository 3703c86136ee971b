/* Its fork server learns late that a child was killed: $LATE milliseconds, the first time. */
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

pid_t waitpid(pid_t pid, int *status, int options) {
  static int is_late;
  pid_t ended = (pid_t)syscall(SYS_wait4, pid, status, options, NULL);
  const char *time = getenv("LATE");
  if (ended > 0 && WIFSIGNALED(*status) && WTERMSIG(*status) == SIGKILL && time && !is_late) {
    is_late = 1;
    usleep((useconds_t)atoi(time) * 1000);
  }
  return ended;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) { return size == 8 && !memcmp(data, "\x7fraining", 8); }
