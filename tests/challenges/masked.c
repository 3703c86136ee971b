/* A text that is masked with a key, which is a field, before it is compared. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint8_t plain[16];
  if (size < 24) return 0;
  for (int i = 0; i < 16; i++) plain[i] = data[8 + i] ^ data[i % 4] ^ (uint8_t)(i * 29);
  if (data[0] == data[1] || data[1] == data[2]) return 0;
  if (!memcmp(plain, "unmask-this-text", 16)) abort();
  return 0;
}
