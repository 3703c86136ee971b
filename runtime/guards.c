/* Objects of another compiler call with -fsanitize-coverage=trace-pc-guard: a number for each edge, and a
 * call for each time that it is passed. An object of its own, so that a program may have its own
 * functions; a sanitizer's runtime has some too, and ffuzz-cc asks for these then. */
#include "counters.h"

void __ffuzz_guards(void) {} /* the name by which the linker is asked for this object */

void __sanitizer_cov_trace_pc_guard_init(uint32_t *start, uint32_t *stop) { __ffuzz_guard_init(start, stop); }
void __sanitizer_cov_trace_pc_guard(uint32_t *guard) { __ffuzz_guard(guard); }
