/* A target with a runtime of an earlier version, built by an ordinary compiler: it accepts the channel
 * for its maps, and runs are ordered by AFL's pipes; with OTHER_VERSION it knows another channel. One
 * edge for each right letter of "QUIZ", a crash behind the last. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#include "channel.h"

static const char id_variable[] = "__AFL_SHM_ID"; /* fuzzers look for it in the file */
static uint8_t *edges;

static void accept_channel(void) {
  const char *fd = getenv(FFUZZ_CHANNEL_ENV);
#ifdef OTHER_VERSION
  edges = shmat(atoi(getenv(id_variable)), NULL, 0);
  return;
#endif
  uint64_t size = FFUZZ_CHANNEL_HEADER + FFUZZ_PAGE;
  if (!fd || ftruncate(atoi(fd), (off_t)size)) _exit(9);
  struct ffuzz_channel *c = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, atoi(fd), 0);
  if (c == MAP_FAILED || c->magic != FFUZZ_CHANNEL_MAGIC) _exit(9);
  c->size = size;
  c->map_offset = FFUZZ_CHANNEL_HEADER;
  c->map_size = 5;
  c->accepted = FFUZZ_CHANNEL_VERSION;
  edges = (uint8_t *)c + FFUZZ_CHANNEL_HEADER;
}

static void run(void) {
  char data[4] = {0};
  if (read(0, data, sizeof data) < 0) _exit(9);
  edges[0]++;
  for (int i = 0; i < 4 && data[i] == "QUIZ"[i]; i++) {
    edges[i + 1]++;
    if (i == 3) abort();
  }
}

int main(void) {
  uint32_t word = 0, status;
  if (!id_variable[0]) return 1;
  accept_channel();
  if (write(199, &word, 4) != 4) return 1;
  while (read(198, &word, 4) == 4) {
    pid_t child = fork();
    if (child == 0) {
      run();
      _exit(0);
    }
    if (write(199, &child, 4) != 4 || waitpid(child, (int *)&status, 0) < 0) return 1;
    if (write(199, &status, 4) != 4) return 1;
  }
  return 0;
}
