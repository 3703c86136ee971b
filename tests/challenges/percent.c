/* A query of a URL: names with escaped characters, decoded before they are compared. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int digit(uint8_t c) {
  if (c >= '0' && c <= '9') return c - '0';
  c |= 0x20;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char text[64];
  size_t length = 0;
  if (size < 1 || size > 60 || data[0] != '?') return 0;
  for (size_t i = 1; i < size && data[i] != '='; i++) {
    if (data[i] == '+') {
      text[length++] = ' ';
    } else if (data[i] == '%') {
      if (i + 2 >= size || digit(data[i + 1]) < 0 || digit(data[i + 2]) < 0) return 0;
      text[length++] = (char)(digit(data[i + 1]) * 16 + digit(data[i + 2]));
      i += 2;
    } else {
      if (data[i] < '0') return 0;
      text[length++] = (char)data[i];
    }
  }
  text[length] = 0;
  if (!strcmp(text, "user name") || length < 5) return 0;
  if (!strcmp(text, "a&b c=d")) abort();
  return 0;
}
