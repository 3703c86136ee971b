/* A remainder, a quotient, and a number that is rotated. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint32_t first, second;
  uint64_t third;
  if (size < 24) return 0;
  memcpy(&first, data, 4);
  memcpy(&second, data + 5, 4);
  memcpy(&third, data + 10, 8);
  if (first % 1000003 != 123457) return 0;
  if (second / 4099 != 654321) return 0;
  if ((third << 13 | third >> 51) == 0x7d3f0a1b2c4e5968) abort();
  return 0;
}
