/* An address of four numbers with dots, and a network that it has to be in. */
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint32_t address = 0;
  size_t at = 0;
  for (int part = 0; part < 4; part++) {
    unsigned value = 0, digits = 0;
    while (at < size && data[at] >= '0' && data[at] <= '9' && digits < 3) value = value * 10 + (data[at++] - '0'), digits++;
    if (!digits || value > 255) return 0;
    address = address << 8 | value;
    if (part < 3 && (at >= size || data[at++] != '.')) return 0;
  }
  if (at >= size || data[at] != '/') return 0;
  if ((address & 0xfffff000) != 0xac1f4000) return 0;
  if ((address & 0xfff) == 0x7b1) abort();
  return 0;
}
