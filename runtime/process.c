/* See process.h. */
#include "process.h"

HIDDEN int ffuzz_frozen;
HIDDEN int ffuzz_preloaded;
HIDDEN int ffuzz_under_fuzzer;
HIDDEN int ffuzz_persistent;
HIDDEN int ffuzz_lasting;
HIDDEN uint32_t ffuzz_iteration;
HIDDEN uint64_t ffuzz_inherited;

unsigned int *__afl_fuzz_len;
unsigned char *__afl_fuzz_ptr;
