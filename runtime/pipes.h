/* AFL's words through two descriptors, and the failures that can be told by them. */
#ifndef FFUZZ_PIPES_H
#define FFUZZ_PIPES_H

#include "base.h"

#define CONTROL_FD 198
#define STATUS_FD 199

/* One word; false if the fuzzer is not there. */
HIDDEN int ffuzz_receive(uint32_t *word);
HIDDEN int ffuzz_answer(uint32_t word);

/* Version 1 of AFL++'s protocol is spoken, not the older one. */
HIDDEN int ffuzz_speaks_v1(void);
HIDDEN void ffuzz_die_with_code(uint32_t code);

#endif
