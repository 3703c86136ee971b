/* The end of a harness that was started by hand and crashes. */
#ifndef FFUZZ_DRIVER_CRASH_H
#define FFUZZ_DRIVER_CRASH_H

#include "base.h"

/* A crash from now on is told together with the name of its input. */
HIDDEN void ffuzz_driver_watch(void);
/* The input that is about to be run; a path of NULL: none is. */
HIDDEN void ffuzz_driver_input(const char *path, const uint8_t *data, size_t size, int in_folder);

/* Ends the program, with libFuzzer's words: the harness has written to its input. */
HIDDEN void ffuzz_driver_overwritten(void) __attribute__((noreturn, cold));
/* Ends the program if that input has taken too much time or memory. */
HIDDEN void ffuzz_driver_check_limits(void);

#endif
