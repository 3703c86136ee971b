/* Fuzzing by a harness that is started by hand. */
#ifndef FFUZZ_DRIVER_ENGINE_H
#define FFUZZ_DRIVER_ENGINE_H

#include "base.h"

/* Becomes `ffuzz libfuzzer` if the command line is one that fuzzes, as libFuzzer reads it; returns otherwise. */
HIDDEN void ffuzz_driver_become_engine(int argc, char **argv);

#endif
