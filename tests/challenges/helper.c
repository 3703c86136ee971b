/* Words that one function compares, more of them than a site logs in a run: one behind the other, so that what is right
 * for one says nothing of the next. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static volatile int seen;

__attribute__((noinline)) static int is(const uint8_t *data, size_t size, const char *word) {
  size_t length = strlen(word);
  return size >= length && !memcmp(data, word, length);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char others[24][8] = {"one",   "two",     "three",   "four",     "five",    "six",      "seven",  "eight",
                                     "nine",  "ten",     "eleven",  "twelve",   "first",   "second",   "third",  "fourth",
                                     "fifth", "sixth",   "seventh", "eighth",   "ninth",   "tenth",    "last",   "none"};
  for (int i = 0; i < 24; i++)
    if (is(data, size, others[i])) seen++;
  if (!is(data, size, "GET ")) return 0;
  if (!is(data + 4, size - 4, "/index")) return 0;
  if (!is(data + 10, size - 10, " HTTP/")) return 0;
  if (is(data + 16, size - 16, "1.1")) abort();
  return 0;
}
