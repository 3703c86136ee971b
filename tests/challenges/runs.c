/* Packed bytes: runs and copies, of which the unpacked text is compared. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint8_t text[80];
  size_t length = 0;
  if (size < 2 || data[0] != 'P') return 0;
  for (size_t at = 1; at < size;) {
    unsigned count = (data[at] & 0x3f) + 1;
    if (data[at] & 0x80) {
      if (at + 1 >= size || length + count > 64) return 0;
      memset(text + length, data[at + 1], count);
      at += 2;
    } else {
      if (at + count >= size || length + count > 64) return 0;
      memcpy(text + length, data + at + 1, count);
      at += 1 + count;
    }
    length += count;
    if (length == 16) break;
  }
  if (length != 16) return 0;
  if (!memcmp(text, "AAAAAAAA--header", 16)) abort();
  return 0;
}
