/* What a process got before the input that crashed it, once more: the files FFUZZ_REPLAY,cnt:000000 and so
 * on, but the last, which is the crash itself. The process then gets its own input as ever. Only for a
 * program that is started by hand: the fuzzer has the inputs already. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "replay.h"
#include "process.h"

#define MOST 65536u
#define KEPT_FD 230 /* the program's standard input meanwhile */

HIDDEN int ffuzz_replay_path(char *path, size_t room, unsigned int number) {
  const char *start = getenv("FFUZZ_REPLAY");
  if (!start || !*start) return 0;
  int n = snprintf(path, room, "%s,cnt:%06u", start, number);
  return n > 0 && (size_t)n < room && access(path, R_OK) == 0;
}

HIDDEN unsigned int ffuzz_replay_count(void) {
  char path[4096];
  unsigned int count = 0;
  if (ffuzz_under_fuzzer) return 0;
  while (count < MOST && ffuzz_replay_path(path, sizeof path, count)) count++;
  return count ? count - 1 : 0;
}

/* Makes one of them standard input; after the last, the program's own is that again. */
HIDDEN void ffuzz_replay_as_stdin(unsigned int number, unsigned int count) {
  static int kept = -1;
  char path[4096];
  if (kept < 0) kept = fcntl(0, F_DUPFD_CLOEXEC, KEPT_FD);
  if (number >= count) {
    if (kept >= 0) dup2(kept, 0);
    return;
  }
  if (!ffuzz_replay_path(path, sizeof path, number)) return;
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  dup2(file, 0);
  close(file);
}
