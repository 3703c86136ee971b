/* A fork server of another runtime that answers the handshake, waits for its first order, and then overwrites the
 * channel with zeros, again and again. With PIPES it never accepts the channel, and takes no orders from the pipe.
 * Its argument is a file: each start appends a letter. Built by an ordinary compiler. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "channel.h"

static const char id_variable[] = "__AFL_SHM_ID"; /* fuzzers look for it in the file */

int main(int argc, char **argv) {
  const char *fd = getenv(FFUZZ_CHANNEL_ENV);
  uint32_t word = 0;
  uint64_t map = FFUZZ_CHANNEL_HEADER, arena = map + FFUZZ_PAGE, virgin = arena + FFUZZ_ARENA;
  uint64_t size = virgin + FFUZZ_PAGE;
  int starts = open(argc > 1 ? argv[1] : "/dev/null", O_CREAT | O_APPEND | O_WRONLY, 0600);
  if (!fd || !id_variable[0] || write(starts, "s", 1) != 1 || ftruncate(atoi(fd), (off_t)size)) _exit(9);
  struct ffuzz_channel *c = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, atoi(fd), 0);
  if (c == MAP_FAILED) _exit(9);
#ifndef PIPES
  c->size = size;
  c->map_offset = map;
  c->map_size = 5;
  c->arena_offset = arena;
  c->virgin_offset = virgin;
  c->bars_offset = virgin + FFUZZ_PAGE / 2;
  c->features = FFUZZ_FEATURE_RUNS;
  c->accepted = FFUZZ_CHANNEL_VERSION;
#endif
  if (write(199, &word, 4) != 4) return 1;
#ifndef PIPES
  volatile struct ffuzz_runs *runs = (void *)((char *)c + FFUZZ_RUNS_OFFSET);
  while (!runs->want) usleep(100);
#endif
  for (;;) {
    memset(c, 0, size);
    usleep(100);
  }
}
