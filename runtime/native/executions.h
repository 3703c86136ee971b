/* Domains perf and slow of a program without source: copies of its functions count executions of blocks. */
#ifndef FFUZZ_NATIVE_EXECUTIONS_H
#define FFUZZ_NATIVE_EXECUTIONS_H

#include "base.h"

HIDDEN void ffuzz_executions_start(int perf, int slow);
/* What was counted so far belongs to no run. */
HIDDEN void ffuzz_executions_drop(void);
/* The domains get what was counted since. Follows the rules of snapshot/state.h. */
HIDDEN void ffuzz_executions_add(void);

#endif
