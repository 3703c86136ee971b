/* Some inputs compute for 40 ms, and only then reach the code that has the bug. */
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static long milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 2 || data[0] < 128) return 0;
  long end = milliseconds() + 40;
  while (milliseconds() < end) continue;
  if (data[1] & 1) abort();
  return 0;
}
