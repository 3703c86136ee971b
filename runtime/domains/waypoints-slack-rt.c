/* Domain `slack`: smallest distance of the two sides of each comparison; 2^32 - 1 and more is far. */
#define __AFL_COMPILER 1
#include "waypoints.h"

FFUZZ_NEW_DOMAIN(__afl_slack_dsf, "slack", 65536, FUZZFACTORY_REDUCER_MIN, 0xFFFFFFFF)
