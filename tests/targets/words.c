/* A gate of each kind of word; behind the last one is a bug. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {"alpha", "bravo", "charlie", "delta"};

static uint32_t word_at(const uint8_t *data) {
  return (uint32_t)data[0] << 24 | (uint32_t)data[1] << 16 | (uint32_t)data[2] << 8 | data[3];
}

static int kind_of(uint32_t type) {
  switch (type) {
    case 0x49484452: return 1;
    case 0x504c5445: return 2;
    case 0x49444154: return 3;
    default: return 0;
  }
}

static int is_name(const uint8_t *data, size_t size) {
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (size >= strlen(names[i]) && !memcmp(data, names[i], strlen(names[i]))) return 1;
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 24 || memcmp(data, "magic-number", 12)) return 0;
  if (kind_of(word_at(data + 12)) != 2) return 0;
  if (!is_name(data + 16, size - 16)) return 0;
  data += size - 3;
  if (data[0] == 'E' && data[1] == 'O' && data[2] == 'F') abort();
  return 0;
}
