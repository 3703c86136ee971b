/* See breakpoints.h. */
#include "breakpoints.h"

HIDDEN const struct breakpoints *ffuzz_breakpoints;
