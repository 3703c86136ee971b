/* Numbers as of LEB128: seven bits in each byte, the highest bit says that another one follows. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t *number(const uint8_t *at, const uint8_t *end, uint64_t *number) {
  *number = 0;
  for (int shift = 0; at < end && shift < 63; shift += 7) {
    *number |= (uint64_t)(*at & 0x7f) << shift;
    if (!(*at++ & 0x80)) return at;
  }
  return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const uint8_t *end = data + size;
  uint64_t first, second;
  data = number(data, end, &first);
  if (!data || first != 624485) return 0;
  data = number(data, end, &second);
  if (data && second == 0x123456789) abort();
  return 0;
}
