/* Takes another way in each run, by the clock; and crashes on FUZ. */
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static volatile unsigned sink;

#define WAY(n) case n: sink += n * 3; break;
#define WAYS4(n) WAY(n) WAY(n + 1) WAY(n + 2) WAY(n + 3)
#define WAYS16(n) WAYS4(n) WAYS4(n + 4) WAYS4(n + 8) WAYS4(n + 12)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  for (int i = 0; i < 4; i++)
    switch (now.tv_nsec >> (i * 4) & 63) { WAYS16(0) WAYS16(16) WAYS16(32) WAYS16(48) }
  if (size > 3 && data[0] == 'F' && data[1] == 'U' && data[2] == 'Z') abort();
  return 0;
}
