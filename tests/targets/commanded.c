/* Does what nobody finds by chance, because it stands behind hashes: who has been there was handed the
 * input. A letter 'w' leads to 256 places and counts, which are all news. -DPAUSE=N makes every run take
 * N microseconds. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

static volatile int place;

static uint64_t hash(const uint8_t *data, size_t size) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t i = 0; i < size; i++) hash = (hash ^ data[i]) * 0x100000001b3u;
  return hash;
}

#define TAKE(size) \
  do { \
    char *block = malloc(size); \
    if (block) *(volatile char *)block = 1; \
    free(block); \
  } while (0)
#define ONE(n) case n: for (int i = 0; i < data[2]; i++) place = n; break;
#define FOUR(n) ONE(n) ONE(n + 1) ONE(n + 2) ONE(n + 3)
#define SIXTEEN(n) FOUR(n) FOUR(n + 4) FOUR(n + 8) FOUR(n + 12)
#define ROW(n) SIXTEEN(n) SIXTEEN(n + 16) SIXTEEN(n + 32) SIXTEEN(n + 48)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
#ifdef PAUSE
  usleep(PAUSE);
#endif
  if (size >= 3 && data[0] == 'w') {
    switch (data[1]) { ROW(0) ROW(64) ROW(128) ROW(192) }
  }
  if (size >= 8 && hash(data, 8) == 0x5ee2208c58b4f5a6u) place = 1000; /* "T0k3nXyz" */
  if (size != 5) return 0;
  switch (hash(data, size)) {
    case 0x8ac625bb85ed202bu: place = 1001; break; /* "alpha" */
    case 0x0b0ba15ea629b072u: place = 1002; break; /* "betaa" */
    case 0x229176bd1f6ba96au: TAKE(123457); break; /* "gamma" */
    case 0x9130ed9ec3ce4f98u: abort();             /* "crash" */
    case 0x81be7a693057527eu: for (;;) pause();    /* "hangs" */
    case 0xe681fc6bb1e5accbu: usleep(150000); break; /* "slow1" */
  }
  return 0;
}
