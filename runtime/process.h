/* What all parts know of this process: who runs it, how, and what it was given. */
#ifndef FFUZZ_PROCESS_H
#define FFUZZ_PROCESS_H

#include "base.h"

/* Set once the layout is fixed: later modules and domains are not seen any more. */
HIDDEN extern int ffuzz_frozen;
/* This runtime was loaded into a program that was linked without it. */
HIDDEN extern int ffuzz_preloaded;
/* The fork server runs, and this process is one of its children. */
HIDDEN extern int ffuzz_under_fuzzer;
/* The fuzzer understands stopped children (__AFL_PERSISTENT). */
HIDDEN extern int ffuzz_persistent;
/* This child is to be put back after each run, from the first call on. */
HIDDEN extern int ffuzz_lasting;
/* Counts passes of the persistent loop, so that a test case is read once in each. */
HIDDEN extern uint32_t ffuzz_iteration;
/* Descriptors below 64 that were open when the fork server started. */
HIDDEN extern uint64_t ffuzz_inherited;

/* The test case of the fuzzer: length word and bytes behind it; NULL without shared memory. */
extern unsigned int *__afl_fuzz_len;
extern unsigned char *__afl_fuzz_ptr;

#endif
