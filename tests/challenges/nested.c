/* Two nested checksums: a sum of words inside, and Adler-32 around it. Behind them a keyword. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 40) return 0;
  uint32_t low = 1, high = 0, stored;
  for (int i = 0; i < 36; i++) {
    low = (low + data[i]) % 65521;
    high = (high + low) % 65521;
  }
  memcpy(&stored, data + 36, 4);
  if (stored != (high << 16 | low)) return 0;
  uint16_t sum = 0, inner;
  for (int i = 4; i < 28; i += 2) sum = (uint16_t)(sum * 3 + (data[i] << 8 | data[i + 1]));
  memcpy(&inner, data + 30, 2);
  if (inner != sum) return 0;
  if (!memcmp(data + 10, "inside", 6)) abort();
  return 0;
}
