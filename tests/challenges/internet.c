/* The checksum of the internet: a sum of words in ones' complement, in the middle of what it is of. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint32_t sum = 0;
  if (size < 20 || data[0] != 0x45) return 0;
  for (int i = 0; i < 20; i += 2) sum += i == 10 ? 0 : (uint32_t)(data[i] << 8 | data[i + 1]);
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  if ((data[10] << 8 | data[11]) != (uint16_t)~sum) return 0;
  if (data[9] == 47 && (size_t)(data[2] << 8 | data[3]) == size) abort();
  return 0;
}
