/* An index: offsets that have to grow, each by as much as the length that stands beside it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint16_t before = 0, expected = 0;
  if (size < 40) return 0;
  for (int i = 0; i < 6; i++) {
    uint16_t offset, length;
    memcpy(&offset, data + 4 + 4 * i, 2);
    memcpy(&length, data + 6 + 4 * i, 2);
    if (i && (offset <= before || offset != expected)) return 0;
    if (length < 2 || length > 0x400) return 0;
    before = offset;
    expected = (uint16_t)(offset + length);
  }
  if (expected == 0x7a3) abort();
  return 0;
}
