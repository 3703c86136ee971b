/* A keyword in UTF-16, compared by a loop over its units. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char keyword[] = "RootEntry";
  if (size < 20) return 0;
  for (size_t i = 0; i < sizeof keyword; i++)
    if ((data[2 * i] | data[2 * i + 1] << 8) != keyword[i]) return 0;
  abort();
}
