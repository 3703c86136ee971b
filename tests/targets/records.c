// Records: a type, a length of two bytes, data, and a full stop, which a wrong length does not meet. The file begins
// with its size. A text of more than 50 bytes is special.

#include <stddef.h>
#include <stdint.h>

static volatile int seen[16];

static int kind(uint8_t type) {
  switch (type) {
  case 'n': seen[0]++; return 1;
  case 't': seen[1]++; return 2;
  case 'e': seen[2]++; return 3;
  default: return 0;
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 3 || data[0] != 'R' || (size_t)(data[1] << 8 | data[2]) != size) return 0;
  seen[3]++;
  for (size_t at = 3; at + 4 <= size;) {
    size_t length = (size_t)(data[at + 1] << 8 | data[at + 2]), end = at + 3 + length;
    int type = kind(data[at]);
    if (!type || end >= size || data[end] != '.') return 0;
    seen[4]++;
    for (size_t i = at + 3; i < end; i++) {
      if (data[i] == ' ') seen[5]++;
      if (data[i] >= 'a') seen[6]++;
    }
    if (type == 2 && length > 50) seen[7]++;
    if (type == 3) seen[8]++;
    at = end + 1;
  }
  return 0;
}
