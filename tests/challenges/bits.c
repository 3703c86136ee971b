/* Fields of bits in one word, each compared for itself. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 8) return 0;
  uint32_t word = (uint32_t)data[0] << 24 | data[1] << 16 | data[2] << 8 | data[3];
  if (word >> 21 != 0x7ff) return 0;
  if ((word >> 19 & 3) != 3 || (word >> 17 & 3) != 1) return 0;
  if ((word >> 12 & 15) != 9 || (word >> 10 & 3) != 1) return 0;
  if ((word >> 1 & 0x1ff) == 0x0d5) abort();
  return 0;
}
