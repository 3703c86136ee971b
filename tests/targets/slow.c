/* Reports the first byte of its input and takes a quarter of it in milliseconds, ten times that with "slower";
 * "noise" reports a number that every run changes. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "waypoints.h"

FUZZFACTORY_DSF_NEW(duration, 1, FUZZFACTORY_REDUCER_MAX, 0);

int main(int argc, char **argv) {
  unsigned char input[1] = {0};
  if (read(0, input, 1) < 1) return 0;
  if (argc > 1 && strcmp(argv[1], "noise") == 0) {
    FUZZFACTORY_DSF_MAX(duration, 0, (unsigned)getpid());
    return 0;
  }
  FUZZFACTORY_DSF_MAX(duration, 0, input[0]);
  long quarter = argc > 1 && strcmp(argv[1], "slower") == 0 ? 2500000L : 250000L;
  struct timespec time = {0, input[0] * quarter};
  while (nanosleep(&time, &time) != 0) continue;
  return 0;
}
