/* See pipes.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pipes.h"
#include "modules.h"

#define OLD_ERROR 0xf800008fu
#define OLD_LARGEST_MAP (8u << 20)
#define V1_ERROR 0xeffe0000u

HIDDEN int ffuzz_receive(uint32_t *word) {
  ssize_t n;
  do n = read(CONTROL_FD, word, 4);
  while (n < 0 && errno == EINTR);
  return n == 4;
}

HIDDEN int ffuzz_answer(uint32_t word) {
  ssize_t n;
  do n = write(STATUS_FD, &word, 4);
  while (n < 0 && errno == EINTR);
  return n == 4;
}

HIDDEN int ffuzz_speaks_v1(void) {
  const char *wish = getenv("FFUZZ_FORKSERVER");
  return (wish && !strcmp(wish, "v1")) || ffuzz_map_size() > OLD_LARGEST_MAP;
}

/* Tells the fuzzer why there is no fork server. Without one the program just runs. */
HIDDEN void ffuzz_die_with_code(uint32_t code) {
  uint32_t word = ffuzz_speaks_v1() ? V1_ERROR | code : OLD_ERROR | code << 8;
  if (ffuzz_answer(word)) _exit(1);
}
