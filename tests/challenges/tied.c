/* Two fields tied to each other, one of them to a constant: a version that stands twice, a size and its copy in sectors. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint32_t version, again, bytes, sectors;
  if (size < 40) return 0;
  memcpy(&version, data + 2, 4);
  memcpy(&again, data + 14, 4);
  memcpy(&bytes, data + 20, 4);
  memcpy(&sectors, data + 32, 4);
  if (version != again) return 0;
  if (again * 3 + 0x101 != 0x5eed5) return 0;
  if (bytes != sectors * 512) return 0;
  if (sectors == 0x1a2b3) abort();
  return 0;
}
