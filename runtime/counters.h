/* What constructors of instrumented objects call. */
#ifndef FFUZZ_COUNTERS_H
#define FFUZZ_COUNTERS_H

#include "base.h"

HIDDEN void ffuzz_counters(void); /* the name by which the linker is asked for this object */
void __sanitizer_cov_8bit_counters_init(uint8_t *start, uint8_t *stop);
void __sanitizer_cov_pcs_init(const uintptr_t *pcs, const uintptr_t *end);
/* For edges that are numbers: a module's numbers, and one of them is passed. */
void __ffuzz_guard_init(uint32_t *start, uint32_t *stop);
void __ffuzz_guard(uint32_t *guard);

#endif
