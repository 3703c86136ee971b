/* Edges of modules whose pages could not be shared. */
#ifndef FFUZZ_COPIES_H
#define FFUZZ_COPIES_H

#include "base.h"

/* `map` is the first byte of the edge map. */
HIDDEN void ffuzz_copies_start(uint8_t *map, uint64_t size);
HIDDEN void ffuzz_copies_flush(void);
HIDDEN void ffuzz_copies_clear(void);
HIDDEN void ffuzz_copies_stop(void);

#endif
