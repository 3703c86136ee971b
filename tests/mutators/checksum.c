// Adds a byte: the sum of the others. Changes and returns memory of its own.
#include <stdlib.h>
#include <string.h>

#include "../../include/ffuzz-mutator.h"

static uint8_t out[(1 << 20) + 1];

void *afl_custom_init(void *afl, unsigned int seed) { return (void)afl, (void)seed, out; }

void afl_custom_deinit(void *data) { (void)data; }

size_t afl_custom_post_process(void *data, uint8_t *buf, size_t size, uint8_t **out_buf) {
  (void)data;
  memcpy(out, buf, size);
  out[size] = 0;
  for (size_t i = 0; i < size; i++) out[size] += buf[i];
  *out_buf = out;
  return size + 1;
}
