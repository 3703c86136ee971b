/* CRC-32 with a table, over all that is before it, and a number inside. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static uint32_t table[256];
  if (!table[1])
    for (uint32_t i = 0; i < 256; i++) {
      uint32_t crc = i;
      for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
      table[i] = crc;
    }
  uint32_t crc = 0xffffffff, stored, word;
  if (size < 24) return 0;
  for (size_t i = 0; i < size - 4; i++) crc = crc >> 8 ^ table[(crc ^ data[i]) & 0xff];
  memcpy(&stored, data + size - 4, 4);
  if (stored != ~crc) return 0;
  memcpy(&word, data + 9, 4);
  if (word == 0x600dda7a) abort();
  return 0;
}
