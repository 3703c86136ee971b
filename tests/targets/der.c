/* A certificate in small: elements of a type, a length and what it counts, four levels deep. Behind an identifier of
 * another length than that of the seed is a bug. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { INTEGER = 0x02, BITS = 0x03, IDENTIFIER = 0x06, SEQUENCE = 0x30, SET = 0x31, EXTENSIONS = 0xa3 };

struct part {
  const uint8_t *at;
  size_t size;
};

/* Takes an element off the front; 0 if there is none of this type. */
static int take(struct part *from, uint8_t type, struct part *into) {
  if (from->size < 2 || from->at[0] != type) return 0;
  size_t size = from->at[1];
  if (size > 0x7f || size > from->size - 2) return 0;
  *into = (struct part){from->at + 2, size};
  from->at += 2 + size;
  from->size -= 2 + size;
  return 1;
}

static int is(const struct part *part, const char *bytes, size_t size) {
  return part->size == size && !memcmp(part->at, bytes, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct part all = {data, size}, certificate, signature, serial, body, key, algorithm, name, bits;
  if (!take(&all, SEQUENCE, &certificate) || all.size) return 0;
  if (!take(&certificate, SEQUENCE, &body) || !take(&certificate, BITS, &signature) || certificate.size) return 0;
  if (!take(&body, INTEGER, &serial) || !take(&body, SEQUENCE, &key)) return 0;
  if (!take(&key, SEQUENCE, &algorithm) || !take(&key, BITS, &bits) || key.size) return 0;
  if (!take(&algorithm, IDENTIFIER, &name)) return 0;
  if (signature.size < 4 || !serial.size) return 0;
  struct part extensions, extension;
  if (take(&body, EXTENSIONS, &extensions)) {
    if (!take(&extensions, SEQUENCE, &extension) || extensions.size || body.size) return 0;
    return 2;
  }
  if (body.size) return 0;
  if (is(&name, "\x2b\x65\x70", 3)) return 1;
  if (is(&name, "\x2a\x86\x48\xce\x3d\x02\x01", 7) && !algorithm.size) {
    if (bits.size > 8) abort();
    return 3;
  }
  return 0;
}
