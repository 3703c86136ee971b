/* What strtol returns: three numbers behind each other, each of another base, the last one calculated with. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char text[65] = {0}, *end;
  memcpy(text, data, size < 64 ? size : 64);
  if (strtol(text, &end, 10) != -90210 || *end++ != ',') return 0;
  if (strtol(end, &end, 0) != 0x5ca1ab1e || *end++ != ',') return 0;
  if (strtol(end, &end, 10) * 37 + 11 == 37 * 48611 + 11) abort();
  return 0;
}
