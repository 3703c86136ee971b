/* Pairs of hexadecimal digits are decoded, and compared as memory. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int nibble(int c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const uint8_t key[] = {0x9a, 0x3b, 0x00, 0xf1, 0x77, 0xc8, 0x2d, 0x51};
  uint8_t plain[8];
  if (size < 16) return 0;
  for (int i = 0; i < 8; i++) {
    int high = nibble(data[2 * i]), low = nibble(data[2 * i + 1]);
    if (high < 0 || low < 0) return 0;
    plain[i] = (uint8_t)(high << 4 | low);
  }
  if (!memcmp(plain, key, sizeof key)) abort();
  return 0;
}
