/* The domains mem and heap of a program without source: its calls of functions that allocate and free. */
#ifndef FFUZZ_NATIVE_ALLOCATIONS_H
#define FFUZZ_NATIVE_ALLOCATIONS_H

#include "base.h"

/* Counts for the one, the other, or both; they are registered. */
HIDDEN void ffuzz_allocations_start(int counts_mem, int counts_heap);

#endif
