/* Fields that have to be equal to other fields: a number in the other order of bytes, and a text twice. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint32_t first, second;
  if (size < 40) return 0;
  memcpy(&first, data + 2, 4);
  memcpy(&second, data + 30, 4);
  if (first == second || first != __builtin_bswap32(second)) return 0;
  if (!memcmp(data + 8, data + 9, 9) || memcmp(data + 8, data + 20, 9)) return 0;
  if (data[10] == 0xd7) abort();
  return 0;
}
