/* Inputs that end in every way there is. The first byte says how; the others are data. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "waypoints.h"

#define UNCOUNTED __attribute__((noinline, no_sanitize("coverage")))

FUZZFACTORY_DSF_NEW(sum, 16, FUZZFACTORY_REDUCER_MAX, 0);
FUZZFACTORY_DSF_NEW(bits, 4, FUZZFACTORY_REDUCER_BIT_UNION, 0);

static volatile char *kept;

/* Everything that this process shares with the fuzzer. */
static void overwrite_channel(void) {
  char line[512];
  FILE *maps = fopen("/proc/self/maps", "r");
  while (maps && fgets(line, sizeof line, maps)) {
    unsigned long from, to;
    if (!strstr(line, "memfd:ffuzz-channel") || sscanf(line, "%lx-%lx rw", &from, &to) != 2) continue;
    if (strstr(line, " rw")) memset((void *)from, 0xa5, to - from);
  }
  if (maps) fclose(maps);
}

static void block_all_signals(void) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, NULL);
}

static int ends[2];

/* A child counts its branch, tells its parent, and counts nothing more before it sleeps or leaves. */
UNCOUNTED static pid_t begin_child(void) { return pipe(ends) ? 1 : fork(); }

UNCOUNTED static void notify_parent(void) {
  if (write(ends[1], "x", 1) != 1) _exit(1);
}

UNCOUNTED static void meet_child(void) {
  char byte;
  if (read(ends[0], &byte, 1) != 1) abort();
  close(ends[0]);
  close(ends[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0) return 0;
  for (size_t i = 1; i < size; i++) {
    FUZZFACTORY_DSF_INC(sum, i % 16, data[i]);
    FUZZFACTORY_DSF_BIT(bits, i % 4, data[i]);
  }
  switch (data[0]) {
    case 'a': abort();
    case 'e': exit(3);
    case 'q': _exit(0);
    case 'k': kill(getpid(), SIGKILL); break;
    case 'n': *(volatile int *)8 = 1; break;
    case 'h': for (;;) kept = (char *)data;
    case 's': kill(getpid(), SIGSTOP); break;
    case 'b': block_all_signals(); for (;;) pause();
    case 'l': kept = malloc(1000); break;
    case 'd': for (int fd = 0; fd < 1024; fd++) close(fd); break;
    case 'f':
      if (begin_child() == 0) {
        notify_parent();
        pause();
      }
      meet_child();
      break;
    case 'g':
      if (begin_child() == 0) {
        notify_parent();
        return 0;
      }
      meet_child();
      break;
    case 'o': overwrite_channel(); break;
    default:
      for (size_t i = 0; i < size; i++)
        if (data[i] > 100) kept = (char *)data + i;
        else if (data[i] % 3 == 0) kept = NULL;
  }
  return 0;
}
