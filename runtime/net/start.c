/* A stand-in for the network: a library that is loaded before all others (LD_PRELOAD). Sockets, and all by which a
 * server waits, are ordinary memory, so a snapshot of the memory is one of the network; and the messages of a session
 * come from the fuzzer's input. FFUZZ_NET says which socket is meant (options.h). Without it every call goes to the
 * kernel.
 *
 * From the lowest part to the highest: input.c has the messages, files.c the descriptors, session.c the rules of
 * delivery; the others are the calls of libc. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "net/answers.h"
#include "net/counter.h"
#include "net/files.h"
#include "net/input.h"
#include "net/kernel.h"
#include "net/options.h"
#include "net/record.h"
#include "net/transcript.h"
#include "preload/list.h"

/* A debugger, a shell, or another program that starts the target gets the same environment. */
static int is_target(void) {
  const char *program = getenv("FFUZZ_NET_PROGRAM");
  struct stat wanted, own;
  if (!program) return 1;
  if (REAL(newfstatat, AT_FDCWD, program, &wanted, 0) || REAL(newfstatat, AT_FDCWD, "/proc/self/exe", &own, 0)) return 1;
  return wanted.st_ino == own.st_ino && wanted.st_dev == own.st_dev;
}

__attribute__((constructor(101))) static void begin(void) {
  int error = errno;
  const char *wanted = getenv("FFUZZ_NET");
  if (!wanted || !is_target()) return;
  ffuzz_net_read_options(wanted);
  if (!ffuzz_net.role) return;
  leave_preload();
  ffuzz_net_transcript_starts();
  ffuzz_net_answers_start();
  ffuzz_net_record_starts();
  ffuzz_net_keep_input();
  ffuzz_net_counter_starts();
  errno = error;
}
