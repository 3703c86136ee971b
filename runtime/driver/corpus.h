/* All inputs of folders, each run once: -runs=0. */
#ifndef FFUZZ_DRIVER_CORPUS_H
#define FFUZZ_DRIVER_CORPUS_H

#include "driver/input.h"

/* The lines about the program's counters. */
HIDDEN void ffuzz_driver_show_modules(void);
/* The exit code. */
HIDDEN int ffuzz_driver_corpus(harness *test);

#endif
