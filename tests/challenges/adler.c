/* Adler-32 over all that is before it, and a keyword inside. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 24) return 0;
  uint32_t low = 1, high = 0;
  for (size_t i = 0; i < size - 4; i++) {
    low = (low + data[i]) % 65521;
    high = (high + low) % 65521;
  }
  const uint8_t *end = data + size - 4;
  if ((high << 16 | low) != ((uint32_t)end[0] << 24 | end[1] << 16 | end[2] << 8 | end[3])) return 0;
  if (!memcmp(data + 3, "deflated", 8)) abort();
  return 0;
}
