/* The comparison log: what the program compares, in runs that the fuzzer wants it of. */
#ifndef FFUZZ_LOG_H
#define FFUZZ_LOG_H

#include "base.h"

HIDDEN void ffuzz_log_attach(struct ffuzz_log *log);
/* Some object of the program has functions that log. */
HIDDEN int ffuzz_can_log(void);
/* From now on they do, until this process ends. */
HIDDEN void ffuzz_log_start(void);

/* What was logged until now, to be there again before each run of a snapshot: its size, 0 if this process does not log. */
HIDDEN uint64_t ffuzz_log_bytes(void);
HIDDEN void ffuzz_log_save(void *to);
HIDDEN void ffuzz_log_load(const void *from);

#endif
