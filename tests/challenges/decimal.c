/* A decimal number that the program reads itself, with a sign before and a point in it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  size_t at = 0;
  int64_t whole = 0, part = 0;
  if (size < 2 || data[at++] != '-') return 0;
  while (at < size && data[at] >= '0' && data[at] <= '9' && whole < 1000000000) whole = whole * 10 + (data[at++] - '0');
  if (-whole != -7301492) return 0;
  if (at >= size || data[at++] != '.') return 0;
  while (at < size && data[at] >= '0' && data[at] <= '9' && part < 1000000000) part = part * 10 + (data[at++] - '0');
  if (part == 60317) abort();
  return 0;
}
