// A harness whose inputs are sealed: four bytes of a sum, then the body. Its own functions keep the seal.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

static uint32_t sum_of(const uint8_t *body, size_t size) {
  uint32_t sum = 0x811c9dc5;
  for (size_t i = 0; i < size; i++) sum = (sum ^ body[i]) * 0x01000193 ^ sum >> 15;
  return sum;
}

static bool seal(uint8_t *data, size_t size) {
  uint32_t sum = sum_of(data + 4, size - 4);
  memcpy(data, &sum, 4);
  return true;
}

static volatile int depth;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint32_t sum;
  if (size < 8) return 0;
  memcpy(&sum, data, 4);
  // Compares nothing that a log could show.
  sum ^= sum_of(data + 4, size - 4);
  for (int i = 16; i; i /= 2) sum |= sum >> i;
  if (sum & 1) return 0;
  const uint8_t *body = data + 4;
  depth = 0;
  if (body[0] == 'S') {
    depth = 1;
    if (body[1] == 'E') {
      depth = 2;
      if (body[2] == 'A') {
        depth = 3;
        if (body[3] == 'L') abort();
      }
    }
  }
  return 0;
}

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

#ifndef CROSSOVER_ONLY
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
  if (most < 8) return 0;
  if (size < 8) {
    memset(data, 0, 8);
    size = 8;
  }
#ifdef CRASHES
  if (seed % 4 == 0) abort();
#endif
#ifdef HANGS
  for (;;) pause();
#endif
#ifdef TOO_MUCH
  if (seed % 2) return most + 1;
#endif
#ifdef OVERFLOWS
  if (seed % 4 == 0) memset(data, 1, most + 64);
#endif
#ifdef NOTHING
  if (seed % 2) return 0;
#endif
  size_t body = LLVMFuzzerMutate(data + 4, size - 4, most - 4);
  if (body < 4) return 0;
  return seal(data, body + 4) ? body + 4 : 0;
}
#endif

#ifdef CROSSOVER
extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t *one, size_t one_size, const uint8_t *other, size_t other_size,
                                            uint8_t *out, size_t most, unsigned seed) {
  size_t half = one_size / 2 < 4 ? 4 : one_size / 2;
  if (one_size < 8 || other_size < 8 || half + other_size > most) return 0;
  memcpy(out, one, half);
  memcpy(out + half, other + 4, other_size - 4);
  size_t size = half + other_size - 4;
  if (size < 8) return 0;
  seal(out, size);
  return size;
}
#endif
