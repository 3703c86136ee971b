/* Orders of the fuzzer through the channel. */
#ifndef FFUZZ_RUNS_H
#define FFUZZ_RUNS_H

#include "base.h"

/* NULL when runs are ordered by AFL's pipes. */
HIDDEN extern struct ffuzz_runs *ffuzz_runs;
/* Where the input goes; NULL if the fuzzer did not say. */
HIDDEN extern const struct ffuzz_input *ffuzz_input;
HIDDEN extern struct ffuzz_left *ffuzz_left;

HIDDEN void ffuzz_runs_attach(uint8_t *base, const struct ffuzz_channel *c);
HIDDEN void ffuzz_wait_word(uint32_t *word, uint32_t old);
HIDDEN void ffuzz_await_word(uint32_t *word, uint32_t wanted);
HIDDEN void ffuzz_note_start(void); /* of a child's work */
HIDDEN void ffuzz_report_end(uint32_t number, int status);
HIDDEN void ffuzz_report_lasting_end(uint32_t number, int status, int quietly);
HIDDEN int ffuzz_next_case(unsigned int most);
HIDDEN enum ffuzz_shown ffuzz_case_shows(void);             /* judges the case that has just ended */
HIDDEN uint32_t ffuzz_case_ends(enum ffuzz_shown shown); /* waits after the last; number of the next */
HIDDEN void ffuzz_case_begins(uint32_t index);
/* Bytes of a case, and how many. */
HIDDEN const uint8_t *ffuzz_case_bytes(uint32_t index, uint32_t *length);

#endif
