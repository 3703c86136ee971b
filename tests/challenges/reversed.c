/* Numbers whose bits are in the other order, as bit streams of faxes and archives have them. */
#include <stdint.h>
#include <stdlib.h>

static uint32_t reversed(const uint8_t *data, unsigned first, unsigned count) {
  uint32_t value = 0;
  for (unsigned i = 0; i < count; i++) {
    unsigned bit = first + i;
    value = value << 1 | (data[bit / 8] >> bit % 8 & 1);
  }
  return value;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 24) return 0;
  if (reversed(data, 5, 12) != 0xe2b) return 0;
  if (reversed(data, 40, 32) != 0x1f8b0842) return 0;
  if (reversed(data, 83, 7) == 0x55) abort();
  return 0;
}
