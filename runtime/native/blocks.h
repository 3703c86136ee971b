/* The blocks of this process, and a breakpoint at the start of each. */
#ifndef FFUZZ_NATIVE_BLOCKS_H
#define FFUZZ_NATIVE_BLOCKS_H

#include "base.h"

/* Registers the files of the table that are loaded; nothing is changed yet. */
HIDDEN void ffuzz_blocks_read(void);
/* Makes their code writable and sets all breakpoints. */
HIDDEN void ffuzz_blocks_arm(void);

HIDDEN void ffuzz_blocks_set_all(void);
HIDDEN void ffuzz_blocks_remove_all(void);
HIDDEN void ffuzz_blocks_remove_known(const uint8_t *virgin);
HIDDEN int ffuzz_blocks_are_code(uint64_t start, uint64_t end);
/* Counts the block with a breakpoint at this address, and removes the breakpoint; false if there is none. */
HIDDEN int ffuzz_block_hit(uint64_t address);

#endif
