/* Four maps with four reducers, filled from the input, which comes from stdin or a file. */
#include <fcntl.h>
#include <unistd.h>
#include "waypoints.h"

FUZZFACTORY_DSF_NEW(most, 1, FUZZFACTORY_REDUCER_MAX, 0);
FUZZFACTORY_DSF_NEW(least, 2, FUZZFACTORY_REDUCER_MIN, 0xFFFFFFFF);
FUZZFACTORY_DSF_NEW(seen, 3, FUZZFACTORY_REDUCER_BIT_UNION, 0);
FUZZFACTORY_DSF_NEW(common, 4, FUZZFACTORY_REDUCER_BIT_INTERSECT, 0xFFFFFFFF);

int main(int argc, char **argv) {
  unsigned char data[16];
  int input = argc > 1 ? open(argv[1], O_RDONLY) : 0;
  if (read(input, data, sizeof data) < 1) return 0;
  FUZZFACTORY_DSF_MAX(most, 5, data[0]); /* key 5 of one is key 0 */
  FUZZFACTORY_DSF_MAX(most, 0, data[0] - 1);
  FUZZFACTORY_DSF_SET(least, 1, data[0]);
  FUZZFACTORY_DSF_BIT(seen, 2, 1u << (data[0] & 31));
  FUZZFACTORY_DSF_SET(common, 4003, data[0] | 0xf0u);
  return 0;
}
