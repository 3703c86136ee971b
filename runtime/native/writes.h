/* The domain out of a program without source: its calls of functions that write. */
#ifndef FFUZZ_NATIVE_WRITES_H
#define FFUZZ_NATIVE_WRITES_H

#include "base.h"

/* The domain is registered. */
HIDDEN void ffuzz_writes_start(void);

#endif
