/* Marked-up text: a name that is closed as it was opened, inside of another one, and an attribute that repeats it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static size_t name(const uint8_t *data, size_t size, size_t at, char *to) {
  size_t length = 0;
  while (at < size && data[at] >= 'a' && data[at] <= 'z' && length < 15) to[length++] = (char)data[at++];
  to[length] = 0;
  return length;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char open[4][16], close[16];
  unsigned depth = 0, pairs = 0;
  size_t at = 0;
  while (at < size) {
    if (data[at] != '<') return 0;
    if (at + 1 < size && data[at + 1] == '/') {
      size_t length = name(data, size, at + 2, close);
      if (!depth || strcmp(open[--depth], close) || length < 3) return 0;
      pairs++;
      at += 2 + length;
    } else {
      if (depth == 4) return 0;
      size_t length = name(data, size, at + 1, open[depth]);
      if (!length || (depth && !strcmp(open[depth], open[depth - 1]))) return 0;
      depth++;
      at += 1 + length;
    }
    if (at >= size || data[at++] != '>') return 0;
    if (pairs == 2 && !depth) abort();
  }
  return 0;
}
