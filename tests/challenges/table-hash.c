/* Keywords of a table with hashes: a word is compared only if its hash leads to an entry. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char *const words[] = {"select", "insert", "update", "delete", "create", "vacuum", "attach", "pragma"};
static const char *table[64];

static uint32_t hash(const char *text, size_t length) {
  uint32_t hash = 5381;
  for (size_t i = 0; i < length; i++) hash = hash * 33 + (uint8_t)text[i];
  return hash % 64;
}

static int is_word(const char *text, const char *word) {
  const char *entry = table[hash(text, 6)];
  return entry && !memcmp(entry, text, 6) && !strcmp(entry, word);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (!*table)
    for (int i = 0; i < 8; i++) table[hash(words[i], 6)] = words[i];
  if (size < 16) return 0;
  if (is_word((const char *)data, "vacuum") && is_word((const char *)data + 7, "pragma")) abort();
  return 0;
}
