/* Limits of time and memory for a harness that was started by hand, and its leaks. */
#ifndef FFUZZ_DRIVER_LIMITS_H
#define FFUZZ_DRIVER_LIMITS_H

#include "driver/input.h"

HIDDEN void ffuzz_driver_limit(void);
/* Runs an input and measures; the program ends where libFuzzer would end. The seconds it took. */
HIDDEN double ffuzz_driver_run(harness *test, const uint8_t *data, size_t size);
/* Runs it again if it has left memory behind, and ends the program if it leaks. */
HIDDEN void ffuzz_driver_look_for_leaks(harness *test, const uint8_t *data, size_t size);

#endif
