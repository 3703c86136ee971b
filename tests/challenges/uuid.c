/* A universally unique identifier in text, of which the binary form is compared. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int digit(uint8_t c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const uint8_t wanted[16] = {0xc1, 0x2a, 0x73, 0x28, 0xf8, 0x1f, 0x11, 0xd2,
                                     0xba, 0x4b, 0x00, 0xa0, 0xc9, 0x3e, 0xc9, 0x3b};
  uint8_t bytes[16];
  if (size < 36) return 0;
  for (size_t i = 0, at = 0; i < 16; i++) {
    if (i == 4 || i == 6 || i == 8 || i == 10)
      if (data[at++] != '-') return 0;
    int high = digit(data[at]), low = digit(data[at + 1]);
    if (high < 0 || low < 0) return 0;
    bytes[i] = (uint8_t)(high << 4 | low);
    at += 2;
  }
  if (!memcmp(bytes, wanted, 16)) abort();
  return 0;
}
