/* The five reducers, each with an initial value that is not the usual one. */
#include <unistd.h>
#include "waypoints.h"

FUZZFACTORY_DSF_NEW(most, 1, FUZZFACTORY_REDUCER_MAX, 7);
FUZZFACTORY_DSF_NEW(least, 1, FUZZFACTORY_REDUCER_MIN, 100);
FUZZFACTORY_DSF_NEW(orders, 1, FUZZFACTORY_REDUCER_LOG_BUCKET, 2);
FUZZFACTORY_DSF_NEW(seen, 1, FUZZFACTORY_REDUCER_BIT_UNION, 1);
FUZZFACTORY_DSF_NEW(common, 1, FUZZFACTORY_REDUCER_BIT_INTERSECT, 0xF0);

int main(void) {
  unsigned char byte;
  if (read(0, &byte, 1) != 1) return 0;
  FUZZFACTORY_DSF_MAX(most, 0, byte);
  FUZZFACTORY_DSF_SET(least, 0, byte);
  FUZZFACTORY_DSF_INC(orders, 0, byte);
  FUZZFACTORY_DSF_BIT(seen, 0, byte);
  FUZZFACTORY_DSF_SET(common, 0, byte | 0x30);
  return 0;
}
