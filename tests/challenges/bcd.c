/* A clock: decimal digits, four bits each, and a day that is counted from another year. */
#include <stdint.h>
#include <stdlib.h>

static int decimal(uint8_t byte) { return byte >> 4 > 9 || (byte & 15) > 9 ? -1 : (byte >> 4) * 10 + (byte & 15); }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 20) return 0;
  int century = decimal(data[3]), year = decimal(data[4]), month = decimal(data[5]), day = decimal(data[6]);
  if (century < 0 || year < 0 || month < 1 || month > 12 || day < 1 || day > 31) return 0;
  if (century * 100 + year != 1987) return 0;
  if ((month - 1) * 31 + day == 342) abort();
  return 0;
}
