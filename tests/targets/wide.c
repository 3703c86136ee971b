/* The widest maps that FuzzFactory knows: keys and sums wrap. */
#include <unistd.h>
#include "waypoints.h"

#ifndef LAST
#define LAST 1
#endif

FUZZFACTORY_DSF_NEW(counts, 65536, FUZZFACTORY_REDUCER_LOG_BUCKET, 0);
FUZZFACTORY_DSF_NEW(sums, 65536, FUZZFACTORY_REDUCER_MAX, 0);
FUZZFACTORY_DSF_NEW(preset, LAST, FUZZFACTORY_REDUCER_MAX, 10);
#ifdef HUGE
FUZZFACTORY_DSF_NEW(huge, HUGE, FUZZFACTORY_REDUCER_MAX, 0);
#endif

int main(void) {
  char byte;
  if (read(0, &byte, 1) != 1) return 0;
  for (int i = 0; i < 5; i++) FUZZFACTORY_DSF_INC(counts, 70000, 1);
  FUZZFACTORY_DSF_INC(sums, 65535, 0xFFFFFFFF);
  FUZZFACTORY_DSF_INC(sums, 131071, 8);
  FUZZFACTORY_DSF_INC(preset, 0, 3);
  return 0;
}
