/* A hash of 64 bits of the program's own, before what it is of. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static uint64_t mix(uint64_t hash, uint8_t byte) {
  hash = (hash ^ byte) * 0x9e3779b97f4a7c15;
  return hash ^ hash >> 29;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint64_t stored, hash = 0x243f6a8885a308d3;
  if (size < 32) return 0;
  memcpy(&stored, data, 8);
  for (size_t i = 8; i < size; i++) hash = mix(hash, data[i]);
  if (stored != hash) return 0;
  if (!memcmp(data + 12, "signed", 6) && data[20] == 0x81) abort();
  return 0;
}
