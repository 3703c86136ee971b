/* Keywords of a table that a loop looks through. Behind one of the words is one of another table. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char *const words[] = {"alpha", "bravo", "charlie", "delta",  "echo",   "foxtrot", "golf",  "hotel",
                                    "india", "juliet", "kilo",   "lima",   "mike",   "november", "oscar", "papa"};

static const char *const values[] = {"north", "east", "south", "west"};

static int look_up(const char *text) {
  for (int i = 0; i < 16; i++)
    if (!strncmp(text, words[i], strlen(words[i]))) return i;
  return -1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char text[65] = {0};
  memcpy(text, data, size < 64 ? size : 64);
  if (look_up(text) != 13) return 0;
  for (int i = 0; i < 4; i++)
    if (!strncmp(text + 8, values[i], 4) && i == 2) abort();
  return 0;
}
