/* A field that depends on another one, a number between two close bounds, nested switches. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint32_t first, second;
  double number;
  if (size < 36) return 0;
  memcpy(&first, data, 4);
  memcpy(&second, data + 9, 4);
  memcpy(&number, data + 16, 8);
  if (first != second + 77 || first < 0x10000000) return 0;
  if (!(number > 1234.5 && number < 1234.75)) return 0;
  switch (data[30]) {
    case 1:
      if (data[31] != 200) return 1;
      switch (data[32] << 8 | data[33]) {
        case 0x1234: return 2;
        case 0xabcd: abort();
      }
  }
  return 0;
}
