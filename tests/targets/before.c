/* Crashes on 'B' if the process got an 'A' before, and on 'C' in any case. In a persistent loop that reads
 * standard input or a file (-DNAMED), with test cases in shared memory (-DSHARED), or as a harness
 * (-DDRIVER). */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef SHARED
__AFL_FUZZ_INIT();
#endif

static volatile int seen;

__attribute__((noinline)) static void needs_another(void) {
  if (seen) abort();
}
__attribute__((noinline)) static void needs_none(void) { *(volatile char *)1 = 1; }

static void take(const uint8_t *data, size_t size) {
  switch (size ? data[0] : 0) {
    case 'A': seen = 1; break;
    case 'B': needs_another(); break;
    case 'C': needs_none(); break;
  }
}

#if defined(DRIVER)
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  take(data, size);
  return 0;
}
#elif defined(SHARED)
int main(void) {
  unsigned char *data = __AFL_FUZZ_TESTCASE_BUF;
  while (__AFL_LOOP(1000)) take(data, __AFL_FUZZ_TESTCASE_LEN);
  return 0;
}
#elif defined(NAMED)
int main(int argc, char **argv) {
  static uint8_t data[64];
  while (argc > 1 && __AFL_LOOP(1000)) {
    int file = open(argv[1], O_RDONLY);
    take(data, (size_t)read(file, data, sizeof data));
    close(file);
  }
  return 0;
}
#else
int main(void) {
  static uint8_t data[64];
  while (__AFL_LOOP(1000)) take(data, (size_t)read(0, data, sizeof data));
  return 0;
}
#endif
