/* Numbers with a sign in a variable number of bytes, as protocol buffers have them, that add up. */
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const int64_t wanted[] = {-1, 300, -70000};
  int64_t place = 0;
  for (size_t at = 0, count = 0; count < 3; count++) {
    uint64_t raw = 0;
    for (unsigned shift = 0;; shift += 7) {
      if (at >= size || shift > 56) return 0;
      raw |= (uint64_t)(data[at] & 0x7f) << shift;
      if (!(data[at++] & 0x80)) break;
    }
    place += (int64_t)(raw >> 1) ^ -(int64_t)(raw & 1);
    if (place != wanted[count]) return 0;
  }
  abort();
}
