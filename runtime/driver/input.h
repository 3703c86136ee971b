/* One input of a harness: its file, and its run. */
#ifndef FFUZZ_DRIVER_INPUT_H
#define FFUZZ_DRIVER_INPUT_H

#include "base.h"

typedef int harness(const uint8_t *, size_t);

/* At most `most` bytes of a file, or of standard input for a path of NULL. NULL if it cannot be read, which is told. */
HIDDEN uint8_t *ffuzz_driver_read(const char *path, size_t most, size_t *size);
HIDDEN void ffuzz_driver_run_one(harness *test, const uint8_t *data, size_t size);

#endif
