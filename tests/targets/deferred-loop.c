/* The harness of AFL++'s page on persistent mode: everything is in main. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

__AFL_FUZZ_INIT();

int main(void) {
  int factor = 3;
  __AFL_INIT();
  unsigned char *data = __AFL_FUZZ_TESTCASE_BUF;
  while (__AFL_LOOP(10000)) {
    if (__AFL_FUZZ_TESTCASE_LEN < 8) continue;
    uint32_t word, other;
    memcpy(&word, data, 4);
    memcpy(&other, data + 4, 4);
    if ((word ^ 0x5a5a5a5a) == 0x031b1608 && word + other * factor == 0x12345679) abort();
  }
  return 0;
}
