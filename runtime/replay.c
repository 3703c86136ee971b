/* What a process got before the input that crashed it, once more: the files FFUZZ_REPLAY,cnt:000000 and so
 * on, but the last, which is the crash itself. The process then gets its own input as ever: its standard
 * input, or the file that FFUZZ_REPLAY_FILE names. Only for a program that is started by hand: the fuzzer
 * has the inputs already. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "replay.h"
#include "process.h"

#define MOST 65536u
#define KEPT_FD 230 /* the program's own input meanwhile */

static int kept = -1;

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

/* The whole content of a file becomes that of another one. */
static void copy(int from, int to) {
  char bytes[4096];
  off_t at = 0;
  ssize_t n = 0;
  if (ftruncate(to, 0)) return;
  while ((n = pread(from, bytes, sizeof bytes, at)) > 0 && pwrite(to, bytes, (size_t)n, at) == n) at += n;
}

/* The file that the program opens holds this input, or its own. */
static void as_file(const char *path, int input) {
  int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return;
  if (kept < 0) {
    int own = memfd_create("ffuzz-input", MFD_CLOEXEC);
    copy(file, own);
    kept = fcntl(own, F_DUPFD_CLOEXEC, KEPT_FD);
    close(own);
  }
  copy(input < 0 ? kept : input, file);
  close(file);
}

static void as_stdin(int input) {
  if (kept < 0) kept = fcntl(0, F_DUPFD_CLOEXEC, KEPT_FD);
  if (input >= 0) dup2(input, 0);
  else if (kept >= 0) dup2(kept, 0);
}

/* Makes one of them the program's input; after the last, its own is that again. */
HIDDEN void ffuzz_replay_input(unsigned int number, unsigned int count) {
  const char *file = getenv("FFUZZ_REPLAY_FILE");
  char path[4096];
  int input = -1;
  if (number < count) {
    if (!ffuzz_replay_path(path, sizeof path, number)) return;
    input = open(path, O_RDONLY | O_CLOEXEC);
    if (input < 0) return;
  }
  if (file && *file) as_file(file, input);
  else as_stdin(input);
  if (input >= 0) close(input);
}
