/* Offsets: one leads to a record of a table, and an offset in that to a name behind the table. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 32 || data[0] != 'O' || data[1] != 'T') return 0;
  uint32_t record = (uint32_t)data[2] << 24 | data[3] << 16 | data[4] << 8 | data[5];
  if (record < 8 || record > 20) return 0;
  uint16_t name;
  memcpy(&name, data + record + 2, 2);
  if (data[record] != 3 || name < 24 || name > size - 6) return 0;
  if (!memcmp(data + name, "target", 6)) abort();
  return 0;
}
