/* A sentence with the xor of its bytes in hexadecimal digits after a star, as NMEA 0183 has it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int digit(uint8_t c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 12 || data[0] != '$') return 0;
  const uint8_t *star = memchr(data, '*', size);
  if (!star || (size_t)(star - data) + 3 > size) return 0;
  unsigned sum = 0;
  for (const uint8_t *at = data + 1; at < star; at++) sum ^= *at;
  int high = digit(star[1]), low = digit(star[2]);
  if (high < 0 || low < 0 || sum != (unsigned)(high << 4 | low)) return 0;
  if (memcmp(data + 1, "GPGGA,", 6)) return 0;
  if (star - data < 16 || memcmp(data + 7, "1234,", 5)) return 0;
  abort();
}
