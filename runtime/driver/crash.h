/* The end of a harness that was started by hand. */
#ifndef FFUZZ_DRIVER_CRASH_H
#define FFUZZ_DRIVER_CRASH_H

#include "base.h"

/* A crash from now on is told as libFuzzer does. */
HIDDEN void ffuzz_driver_watch(void);
/* The input that is about to be run; NULL: none is. */
HIDDEN void ffuzz_driver_input(const uint8_t *data, size_t size);
/* The input at hand runs since so many seconds; -1: there is none. */
HIDDEN double ffuzz_driver_running(void);

/* Ends the program. `what` follows "ERROR: libFuzzer:"; `kind` begins the name of the file. */
HIDDEN void ffuzz_driver_end(const char *kind, const char *what, const char *summary, long code)
    __attribute__((noreturn, cold));
HIDDEN void ffuzz_driver_overwritten(void) __attribute__((noreturn, cold));
/* A signal asks for the end behind this input. */
HIDDEN int ffuzz_driver_is_to_end(void);

#endif
