/* The blocks of this process: those that a copy counts, and a breakpoint at the start of each other. */
#ifndef FFUZZ_NATIVE_BLOCKS_H
#define FFUZZ_NATIVE_BLOCKS_H

#include "base.h"

/* Registers the files of the table that are loaded; nothing is changed yet. */
HIDDEN void ffuzz_blocks_read(void);
/* Makes their code writable, and sets all breakpoints and jumps. */
HIDDEN void ffuzz_blocks_arm(void);

/* Counters of the map that stay 0 with detours, without. */
HIDDEN uint64_t ffuzz_blocks_absent(int detours);

HIDDEN void ffuzz_blocks_remove_all(void);
/* From now on there are breakpoints alone, and all of them. */
HIDDEN void ffuzz_blocks_leave_detours(void);
/* For the next run: all, or only those of blocks that no run has hit yet, by this map of unseen hit counts. */
HIDDEN void ffuzz_blocks_prepare(const uint8_t *unseen);
/* From now on comparisons have breakpoints, and blocks have none. */
HIDDEN void ffuzz_blocks_log(void);
HIDDEN int ffuzz_blocks_are_code(uint64_t start, uint64_t end);
/* Counts the block whose breakpoint was met, removes the breakpoint, and lets the context (ucontext_t) go on there. Or
 * carries out a comparison. False if there is no breakpoint. */
HIDDEN int ffuzz_block_hit(void *context);
/* The executions of blocks since they were taken last; NULL drops them. */
HIDDEN void ffuzz_blocks_take_executions(void (*take)(uint32_t file, uint32_t at, uint64_t count));
/* These pages have their counters. */
HIDDEN int ffuzz_blocks_have_executions(uint64_t start, uint64_t end);
/* One was met since they were forgotten. */
HIDDEN int ffuzz_blocks_were_met(void);
HIDDEN void ffuzz_blocks_forget_met(void);

#endif
