// Reads a variable, -DREADS=NAME, as one of AFL++'s mutators does that cannot work here; init would crash.
#include <stdlib.h>

#include "../../include/ffuzz-mutator.h"

#define TEXT_OF(NAME) #NAME
#define TEXT(NAME) TEXT_OF(NAME)

void *afl_custom_init(void *afl, unsigned int seed) {
  (void)seed;
  return getenv(TEXT(READS)) ? afl : **(void ***)afl;
}

void afl_custom_deinit(void *data) { (void)data; }

uint32_t afl_custom_fuzz_count(void *data, const uint8_t *buf, size_t size) {
  (void)data, (void)buf, (void)size;
  return 1;
}
