/* Comparisons that other instrumentation than ours reports. */
#ifndef FFUZZ_COMPARISONS_H
#define FFUZZ_COMPARISONS_H

#include "base.h"

/* This run is logged. */
HIDDEN extern uint8_t ffuzz_foreign_log;
/* The number of the place that a call returns to: the same in every process, wherever its objects lie. */
HIDDEN uint32_t ffuzz_site_of(const void *address);

/* Go calls with a stack that is aligned to 8 bytes only. */
#ifdef __x86_64__
#define ANY_STACK __attribute__((force_align_arg_pointer))
#else
#define ANY_STACK
#endif

#endif
