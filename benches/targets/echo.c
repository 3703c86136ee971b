/* A mutator that hands its input back, called in 6 % of havoc's steps. */
#include "ffuzz-mutator.h"

void *afl_custom_init(void *afl, unsigned int seed) {
  static int data;
  return (void)afl, (void)seed, &data;
}

void afl_custom_deinit(void *data) { (void)data; }

size_t afl_custom_havoc_mutation(void *data, uint8_t *buf, size_t size, uint8_t **out_buf,
                                 size_t max_size) {
  (void)data, (void)max_size;
  *out_buf = buf;
  return size;
}

uint8_t afl_custom_havoc_mutation_probability(void *data) { return (void)data, 6; }
