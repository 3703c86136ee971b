/* Text in base 64 is decoded, and compared as memory. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int digit64(int c) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const char *at = c ? strchr(digits, c) : NULL;
  return at ? (int)(at - digits) : -1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint8_t plain[12];
  if (size < 16) return 0;
  for (int i = 0; i < 4; i++) {
    uint32_t group = 0;
    for (int j = 0; j < 4; j++) {
      int value = digit64(data[4 * i + j]);
      if (value < 0) return 0;
      group = group << 6 | (uint32_t)value;
    }
    plain[3 * i] = (uint8_t)(group >> 16);
    plain[3 * i + 1] = (uint8_t)(group >> 8);
    plain[3 * i + 2] = (uint8_t)group;
  }
  if (!memcmp(plain, "user:secret!", 12)) abort();
  return 0;
}
