/* The number of lines, and of words in the longest line, are fields. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 16 || data[0] != '#') return 0;
  int lines = 0, words = 0, most = 0;
  for (size_t i = 3; i < size; i++) {
    if (data[i] == ' ') words++;
    if (words > most) most = words;
    if (data[i] == '\n') lines++, words = 0;
  }
  if (lines < 3 || most < 4) return 0;
  if (data[1] == '0' + lines && data[2] == '0' + most) abort();
  return 0;
}
