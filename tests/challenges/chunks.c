/* Chunks as in PNG: length, kind, data, a checksum of kind and data. Two chunks of right kinds and contents. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static uint32_t word(const uint8_t *data) { return (uint32_t)data[0] << 24 | data[1] << 16 | data[2] << 8 | data[3]; }

/* FNV-1a, turned. */
static uint32_t hash(const uint8_t *data, size_t size) {
  uint32_t hash = 0x811c9dc5;
  for (size_t i = 0; i < size; i++) hash = (hash ^ data[i]) * 0x01000193;
  return hash << 7 | hash >> 25;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  size_t at = 0;
  int state = 0;
  while (size - at >= 12) {
    uint32_t length = word(data + at);
    if (length > size - at - 12) return 0;
    const uint8_t *kind = data + at + 4;
    if (word(kind + 4 + length) != hash(kind, 4 + length)) return 0;
    if (state == 0 && word(kind) == 0x48656164 && length >= 4 && kind[4] == 7) state = 1;
    else if (state == 1 && word(kind) == 0x54657874 && length >= 2 && kind[4] == '$') abort();
    at += 12 + length;
  }
  return 0;
}
