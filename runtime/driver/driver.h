/* The driver behind -fsanitize=fuzzer, as libFuzzer declares it. */
#ifndef FFUZZ_DRIVER_DRIVER_H
#define FFUZZ_DRIVER_DRIVER_H

#include "driver/input.h"

int LLVMFuzzerRunDriver(int *argc, char ***argv, harness *test);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

#endif
