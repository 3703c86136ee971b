/* Two of the keywords of a table that bsearch looks through. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct word {
  char name[8];
  int kind;
};

static const struct word words[] = {{"array", 3}, {"break", 9}, {"catch", 4}, {"do", 1},    {"else", 8},
                                    {"final", 2}, {"goto", 7},  {"if", 5},    {"let", 11},  {"match", 6},
                                    {"null", 10}, {"print", 0}, {"redo", 12}, {"switch", 13}, {"while", 14}};

static int order(const void *key, const void *entry) { return strncmp(key, ((const struct word *)entry)->name, 8); }

static int kind(const char *name) {
  const struct word *word = bsearch(name, words, sizeof words / sizeof *words, sizeof *words, order);
  return word ? word->kind : -1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char first[9] = {0}, second[9] = {0};
  if (size < 16) return 0;
  memcpy(first, data, 8);
  memcpy(second, data + 8, 8);
  if (kind(first) != 13) return 0;
  if (kind(second) == 14) abort();
  return 0;
}
