/* The comparison log: what the program compares, in runs that the fuzzer wants it of. */
#ifndef FFUZZ_LOG_H
#define FFUZZ_LOG_H

#include "base.h"

HIDDEN void ffuzz_log_attach(struct ffuzz_log *log);
/* Some object of the program has functions that log. */
HIDDEN int ffuzz_can_log(void);
/* From now on they do, until this process ends. */
HIDDEN void ffuzz_log_start(void);

/* Called by a constructor of each linked object that can log: its flag is set when it shall. */
void __ffuzz_log_flag(uint8_t *flag);

/* What second versions of functions call, the handler of breakpoints, and callbacks of other instrumentation. `how`: struct ffuzz_comparison. */
struct string;
void __ffuzz_log_values(uint32_t site, uint32_t how, uint64_t a, uint64_t b);
void __ffuzz_log_switch(uint32_t site, uint32_t how, uint64_t value, const uint64_t *cases, uint32_t count);
void __ffuzz_log_memory(uint32_t site, uint32_t how, const void *a, const void *b, uint64_t length);
void __ffuzz_log_text(uint32_t site, uint32_t how, const char *a, const char *b, uint64_t length);
void __ffuzz_log_search(uint32_t site, uint32_t how, const char *a, uint64_t a_length, const char *b, uint64_t b_length);
void __ffuzz_log_string(uint32_t site, uint32_t how, const struct string *a, const void *b, uint32_t is_string);
/* Of a string of libc++ or libstdc++: a part of it, with memory, or with a text if its length is all ones. */
void __ffuzz_log_string_part(uint32_t site, uint32_t how, const void *a, uint32_t is_of_libcxx, uint64_t from,
                             uint64_t count, const char *b, uint64_t b_length);
/* What may be no comparison: these pointers need not be valid. A length of all ones: two texts. */
void __ffuzz_log_maybe(uint32_t site, uint32_t how, const void *a, const void *b, uint64_t length);

/* What was logged until now, to be there again before each run of a snapshot: its size, 0 if this process does not log. */
HIDDEN uint64_t ffuzz_log_bytes(void);
HIDDEN void ffuzz_log_save(void *to);
HIDDEN void ffuzz_log_load(const void *from);

#endif
