/* A frame: marks at both ends, a length, and a CRC of 16 bits over what is between. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 16 || data[0] != 0x7e) return 0;
  size_t length = data[1];
  if (length < 6 || length + 5 > size || data[length + 4] != 0x7e) return 0;
  uint16_t crc = 0xffff;
  for (size_t i = 0; i < length; i++) {
    crc ^= (uint16_t)(data[2 + i] << 8);
    for (int bit = 0; bit < 8; bit++) crc = (uint16_t)(crc << 1 ^ (crc & 0x8000 ? 0x1021 : 0));
  }
  if ((data[length + 2] << 8 | data[length + 3]) != crc) return 0;
  if (data[2] == 0xc0 && data[3] == 0x21 && data[5] == 0xbf) abort();
  return 0;
}
