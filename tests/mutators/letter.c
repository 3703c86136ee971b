// Puts a letter behind every input that is about to be run: -DLETTER='A'.
#include <string.h>

#include "../../include/ffuzz-mutator.h"

static uint8_t out[1 << 16];

void *afl_custom_init(void *afl, unsigned int seed) {
  (void)afl, (void)seed;
  return out;
}

void afl_custom_deinit(void *data) { (void)data; }

size_t afl_custom_post_process(void *data, uint8_t *buf, size_t size, uint8_t **result) {
  (void)data;
  if (size >= sizeof out) return 0;
  memcpy(out, buf, size);
  out[size] = LETTER;
  *result = out;
  return size + 1;
}
