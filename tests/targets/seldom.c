/* One input in 300 computes for 20 ms; the others take microseconds. Each slow run is a byte in the file
 * that SLOW_RUNS names, written before it begins to compute. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static long computed(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint32_t hash = 2166136261u;
  for (size_t i = 0; i < size; i++) hash = (hash ^ data[i]) * 16777619u;
  if (hash % 300) return 0;
  int file = open(getenv("SLOW_RUNS"), O_WRONLY | O_APPEND | O_CREAT, 0600);
  if (write(file, "x", 1) != 1) abort();
  close(file);
  for (long end = computed() + 20; computed() < end;) {}
  return 0;
}
