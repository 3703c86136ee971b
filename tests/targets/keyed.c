/* Comparisons that stock clang reports with -fsanitize-coverage=trace-cmp. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint64_t word;
  if (size < 12) return 0;
  memcpy(&word, data, sizeof word);
  if (word != 0x1122334455667788) return 0;
  switch (data[8] << 8 | data[9]) {
    case 0x4142:
      if (data[10] == 0x51) abort();
      return 1;
    case 0x4344: return 2;
    case 0x4546: return 3;
    case 0x4748: return 4;
  }
  return 0;
}
