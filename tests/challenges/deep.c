/* Chunks with lengths in chunks with lengths, three deep: the inner ones fill the outer ones. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* What is in a chunk of this kind, if the chunk fills what is there. */
static const uint8_t *inside(const uint8_t *data, size_t *size, const char *kind) {
  if (*size < 6 || memcmp(data, kind, 4)) return NULL;
  size_t length = (size_t)data[4] << 8 | data[5];
  if (length != *size - 6) return NULL;
  *size = length;
  return data + 6;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const uint8_t *list = inside(data, &size, "RIFX");
  const uint8_t *entry = list ? inside(list, &size, "LIST") : NULL;
  const uint8_t *text = entry ? inside(entry, &size, "INFO") : NULL;
  if (text && size >= 4 && text[0] == 0xfe && text[3] == 0x99) abort();
  return 0;
}
