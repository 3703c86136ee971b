/* Numbers that are written in the input: decimal, hexadecimal, and in base 64. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int digit64(int c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char text[49] = {0};
  if (size < 40) return 0;
  memcpy(text, data, size < 48 ? size : 48);
  if (strtoul(text, NULL, 10) != 3141592653) return 0;
  if (strtoul(text + 12, NULL, 16) != 0xdecafbad) return 0;
  uint32_t number = 0;
  for (int i = 24; i < 30; i++) {
    int value = digit64(text[i]);
    if (value < 0) return 0;
    number = number << 6 | (uint32_t)value;
  }
  if (number == 0xb1a5c0de) abort();
  return 0;
}
