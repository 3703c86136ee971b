/* Two entries of a kind, a length and a value, and a trailer that says how many bytes they are. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 16 || data[0] != 0x21) return 0;
  size_t first = data[1];
  if (first < 5 || first + 8 > size) return 0;
  const uint8_t *entry = data + 2 + first;
  if (entry[0] != 0x34 || entry[1] != 2) return 0;
  const uint8_t *trailer = entry + 4;
  if (trailer + 2 > data + size || trailer[0] != 0xff || trailer[1] != trailer - data) return 0;
  if (!memcmp(data + 2, "model", 5) && (entry[2] << 8 | entry[3]) == 0x4e21) abort();
  return 0;
}
