/* A number whose bytes stand apart from each other and are compared one by one; another one of bits of several bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const uint8_t wanted[] = {0x5a, 0x0f, 0xe7, 0x99, 0x13, 0xc4};
  if (size < 40) return 0;
  for (int i = 0; i < 6; i++)
    if (data[3 + 5 * i] != wanted[i]) return 0;
  uint32_t bits = 0;
  for (int i = 0; i < 4; i++) bits = bits << 4 | (data[32 + i] >> 2 & 15);
  if (bits == 0xb16d) abort();
  return 0;
}
