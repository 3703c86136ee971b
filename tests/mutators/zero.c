// Draws random numbers as AFL++'s own mutators do: by code of its headers, which reads the descriptor
// whose number stands in afl-fuzz's state. In a state of zeros that is 0. Ends the process where AFL++'s
// code does, when it gets fewer bytes than it wants.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../include/ffuzz-mutator.h"

static uint8_t out[1 << 16];
static const int *state;

void *afl_custom_init(void *afl, unsigned int seed) {
  (void)seed;
  state = afl;
  return out;
}

void afl_custom_deinit(void *data) { (void)data; }

static void draw(uint64_t *seed, size_t bytes) {
  if (read(state[0], seed, bytes) != (ssize_t)bytes) {
    fprintf(stderr, "short read from descriptor %d\n", state[0]);
    _exit(1);
  }
}

static void note(const uint64_t *seed) {
  const char *name = getenv("MUTATOR_LOG");
  FILE *log = name ? fopen(name, "a") : NULL;
  if (!log) return;
  fprintf(log, "%016lx %016lx %016lx\n", (long)seed[0], (long)seed[1], (long)seed[2]);
  fclose(log);
}

size_t afl_custom_fuzz(void *data, uint8_t *buf, size_t size, uint8_t **result, uint8_t *add, size_t add_size,
                       size_t max_size) {
  (void)data, (void)add, (void)add_size, (void)max_size;
  uint64_t seed[3];
  draw(seed, sizeof seed);
  note(seed);
  if (size) buf[seed[0] % size] = (uint8_t)seed[1];
  *result = buf;
  return size;
}
