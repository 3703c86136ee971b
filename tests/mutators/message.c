// Makes DATA! of QUIT, in messages alone: what is no text ends the process. $MESSAGE_BY chooses the function.
#include <stdlib.h>
#include <string.h>

#include "../../include/ffuzz-mutator.h"

static uint8_t out[1 << 16];
static int is_havoc;

void *afl_custom_init(void *afl, unsigned int seed) {
  (void)afl, (void)seed;
  is_havoc = !strcmp(getenv("MESSAGE_BY"), "havoc");
  return out;
}

void afl_custom_deinit(void *data) { (void)data; }

static size_t changed(const uint8_t *buf, size_t size, uint8_t **result, size_t max_size) {
  int is_quit = size >= 4 && !memcmp(buf, "QUIT", 4);
  if (size + 1 > max_size || size + 1 > sizeof out) return 0;
  *result = out;
  memcpy(out, is_quit ? (const uint8_t *)"DATA!" : buf, is_quit ? 5 : size);
  return is_quit ? 5 : size;
}

size_t afl_custom_fuzz(void *data, uint8_t *buf, size_t size, uint8_t **result, uint8_t *add_buf, size_t add_size,
                       size_t max_size) {
  (void)data;
  if (is_havoc) return 0;
  // A list has at least one word.
  if (max_size > (1 << 20) - 4 || memchr(buf, 0, size) || (add_size && memchr(add_buf, 0, add_size))) abort();
  return changed(buf, size, result, max_size);
}

size_t afl_custom_havoc_mutation(void *data, uint8_t *buf, size_t size, uint8_t **result, size_t max_size) {
  (void)data;
  *result = buf;
  return is_havoc ? changed(buf, size, result, max_size) : size;
}

uint8_t afl_custom_havoc_mutation_probability(void *data) { return (void)data, 50; }
