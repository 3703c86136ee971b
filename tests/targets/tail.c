/* Reads the byte after an input of one byte, which is 0 unless something of another input is left there. */
#include <stdlib.h>

__AFL_FUZZ_INIT();

int main(void) {
  __AFL_INIT();
  unsigned char *data = __AFL_FUZZ_TESTCASE_BUF;
#ifdef LOOP
  while (__AFL_LOOP(1000))
#endif
  {
    int length = __AFL_FUZZ_TESTCASE_LEN;
    if (length == 1 && data[1]) abort();
  }
  return 0;
}
