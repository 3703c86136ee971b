/* Keywords in any case, by the functions of the library. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <strings.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char text[65] = {0};
  memcpy(text, data, size < 64 ? size : 64);
  if (strncasecmp(text, "Content-Encoding:", 17)) return 0;
  if (!strcasecmp(text + 17, "x-Deflate64")) abort();
  return 0;
}
