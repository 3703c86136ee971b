/* Eight gates of different kinds, one behind the other. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static uint32_t hash(const uint8_t *data, size_t size) {
  uint32_t hash = 17;
  for (size_t i = 0; i < size; i++) hash = hash * 31 + data[i];
  return hash;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint16_t version;
  uint32_t stored, key;
  if (size < 40 || memcmp(data, "\211CNT\r\n", 6)) return 0;
  memcpy(&version, data + 6, 2);
  if (version < 0x0301 || version > 0x0303) return 0;
  if ((size_t)(data[8] << 8 | data[9]) + 10 != size) return 0;
  memcpy(&stored, data + 10, 4);
  if (stored != hash(data + 14, size - 14)) return 0;
  switch (data[14]) {
    case 2: return 1;
    case 0x4b: break;
    default: return 0;
  }
  memcpy(&key, data + 16, 4);
  if (key * 0x01000193 + 5 != 0xfeedc0de) return 0;
  if (strncmp((const char *)data + 20, "final-", 6)) return 0;
  if (data[26] + data[27] * 3 == 777) abort();
  return 0;
}
