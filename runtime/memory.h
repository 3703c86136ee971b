/* Pages and messages without malloc and stdio. */
#ifndef FFUZZ_MEMORY_H
#define FFUZZ_MEMORY_H

#include "base.h"

/* Ends the process if there are none. */
HIDDEN void *ffuzz_pages(size_t bytes);
HIDDEN void *ffuzz_grow(void *old, size_t used, size_t needed);
HIDDEN void ffuzz_say(const char *text);

#endif
