/* Numbers that are calculated with before they are compared. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static uint32_t word(const uint8_t *data) { return (uint32_t)data[0] << 24 | data[1] << 16 | data[2] << 8 | data[3]; }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint64_t wide;
  if (size < 40) return 0;
  if (word(data) * 3 + 0x1234567 != 0xc0ffee11) return 0;
  if ((word(data + 5) ^ 0x5aa5c33c) + 9 != 0x31415926) return 0;
  memcpy(&wide, data + 12, 8);
  if (wide * 0x9e3779b97f4a7c15 != 0x0123456789abcdef) return 0;
  uint64_t product = (uint64_t)word(data + 24) * 1000;
  if (product < 123456789000 || product > 123456790500) return 0;
  if ((data[30] << 8 | data[31]) / 7 != 8123) return 0;
  abort();
}
