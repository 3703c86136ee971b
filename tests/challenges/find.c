/* A keyword that may stand anywhere, and what stands behind it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char text[65] = {0};
  memcpy(text, data, size < 64 ? size : 64);
  const char *at = strstr(text, "startxref");
  if (!at || at - text < 5) return 0;
  if (strtoul(at + 9, NULL, 10) == (unsigned long)(at - text)) abort();
  return 0;
}
