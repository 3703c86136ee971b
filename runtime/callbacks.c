/* What objects compiled for libFuzzer by another compiler call (-fsanitize=fuzzer-no-link and its parts):
 * array indices, calls by pointer, memory accesses. Their edges are counted, their comparisons logged; this is ignored,
 * and only has to be there. Weak: a sanitizer's runtime, or the program, may have its own. The
 * arguments are left where they are, so one form serves all. */
#include <stdint.h>

#define IGNORED(NAME) \
  __attribute__((weak)) void __sanitizer_cov_##NAME(void) {}

IGNORED(trace_gep)
IGNORED(trace_pc)
IGNORED(trace_pc_indir)
IGNORED(load1)
IGNORED(load2)
IGNORED(load4)
IGNORED(load8)
IGNORED(load16)
IGNORED(store1)
IGNORED(store2)
IGNORED(store4)
IGNORED(store8)
IGNORED(store16)

/* The deepest stack so far, kept by inlined code. */
__attribute__((weak, tls_model("initial-exec"))) _Thread_local uintptr_t __sancov_lowest_stack;
