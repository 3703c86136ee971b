/* A CRC-32 over a region whose length is a field, and gates inside the region. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static uint32_t crc32(const uint8_t *data, size_t size) {
  uint32_t crc = 0xffffffff;
  for (size_t i = 0; i < size; i++) {
    crc ^= data[i];
    for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 24) return 0;
  size_t length = data[0];
  if (length < 12 || length + 5 > size) return 0;
  uint32_t stored = (uint32_t)data[1] << 24 | data[2] << 16 | data[3] << 8 | data[4];
  if (stored != crc32(data + 5, length)) return 0;
  if (data[5] != 'k' || data[7] != 0xe1) return 0;
  uint16_t word;
  memcpy(&word, data + 12, 2);
  if (word * 5 + 3 != 51238) return 0;
  if (data[15] + data[16] == 444) abort();
  return 0;
}
