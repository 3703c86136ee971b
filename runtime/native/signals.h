/* SIGTRAP is ours: the handler of breakpoints. The program's own one is called for the traps that are its own. */
#ifndef FFUZZ_NATIVE_SIGNALS_H
#define FFUZZ_NATIVE_SIGNALS_H

#include "base.h"

HIDDEN void ffuzz_signals_start(void);

#endif
