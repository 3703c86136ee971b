/* Persistent mode with domains; initial values that are not 0, counts before and after the loop. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "waypoints.h"

FUZZFACTORY_DSF_NEW(sum, 8, FUZZFACTORY_REDUCER_MAX, 0);
FUZZFACTORY_DSF_NEW(least, 1, FUZZFACTORY_REDUCER_MIN, 0xFFFFFFFF);

#ifdef SHARED_INPUT
__AFL_FUZZ_INIT();
#endif

static void one(const unsigned char *data, int length) {
  FUZZFACTORY_DSF_INC(sum, 0, 1);
  FUZZFACTORY_DSF_SET(least, 0, length);
  if (length > 0 && data[0] == 'a') FUZZFACTORY_DSF_INC(sum, 1, 5);
  if (length > 0 && data[0] == 'b') exit(3);
  if (length > 0 && data[0] == 'c') abort();
}

int main(void) {
  FUZZFACTORY_DSF_INC(sum, 7, 100);
#ifdef __AFL_HAVE_MANUAL_CONTROL
  __AFL_INIT();
#endif
  FUZZFACTORY_DSF_INC(sum, 6, 100);
#ifdef SHARED_INPUT
  unsigned char *data = __AFL_FUZZ_TESTCASE_BUF;
#else
  static unsigned char data[64];
#endif
  while (__AFL_LOOP(3)) {
#ifdef SHARED_INPUT
    int length = __AFL_FUZZ_TESTCASE_LEN;
#else
    int length = (int)read(0, data, sizeof data);
#endif
    one(data, length);
  }
  FUZZFACTORY_DSF_INC(sum, 5, 100);
  return 0;
}
