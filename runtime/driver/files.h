/* A harness that is started by hand. */
#ifndef FFUZZ_DRIVER_FILES_H
#define FFUZZ_DRIVER_FILES_H

#include "driver/input.h"

/* Everything that is not for a fuzzer; the exit code. */
HIDDEN int ffuzz_driver_by_hand(harness *test, const char *program);

#endif
