/* A sum of the program's own over a text, and one text that it does not bear: -DWANTED= its hash. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint32_t stored, sum = 17;
  uint64_t hash = 0xcbf29ce484222325;
  if (size < 8) return 0;
  memcpy(&stored, data, 4);
  for (size_t i = 4; i < size; i++) sum = sum * 31 + data[i];
  if (stored != sum) return 0;
  for (size_t i = 4; i < size; i++) hash = (hash ^ data[i]) * 0x100000001b3;
  if (hash == WANTED) abort();
  return 0;
}
