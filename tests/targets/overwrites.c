/* A harness that writes to an input with a 'w' at its beginning: at its end. */
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size > 0 && data[0] == 'w') ((uint8_t *)data)[size - 1] ^= 1;
  return 0;
}
