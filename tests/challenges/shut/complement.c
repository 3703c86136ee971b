/* The head of a cartridge: a sum and its complement, which have to be each other's, and a negated sum over a title. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint16_t sum, complement;
  if (size < 40) return 0;
  memcpy(&complement, data + 28, 2);
  memcpy(&sum, data + 30, 2);
  if ((uint16_t)(sum + complement) != 0xffff) return 0;
  uint8_t check = 0;
  for (int i = 4; i < 20; i++) check = check - data[i] - 1;
  if (check != data[21]) return 0;
  if (sum == 0x9a37 && data[4] == 'Z') abort();
  return 0;
}
