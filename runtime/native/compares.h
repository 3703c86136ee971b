/* Comparisons of a program without instrumentation, in a run that logs them: breakpoints on its compare instructions
 * and on its calls of functions that compare. The handler carries out what they stand for. */
#ifndef FFUZZ_NATIVE_COMPARES_H
#define FFUZZ_NATIVE_COMPARES_H

#include "base.h"
#include "native/table.h"

/* Sites of a file that is loaded at `base`; `sites` is copied. */
HIDDEN void ffuzz_compares_add(uint64_t base, const struct ffuzz_code_site *sites, uint32_t count, uint32_t first);
HIDDEN int ffuzz_compares_are_there(void);
HIDDEN void ffuzz_compares_set_all(void);
/* Logs and carries out what stands at the address before the context's; false if there is no comparison. `context` is
 * a ucontext_t. */
HIDDEN int ffuzz_compare_hit(void *context);

#endif
