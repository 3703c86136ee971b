/* A date: numbers that atoi reads at fixed places, between bounds. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char text[11] = {0};
  if (size < 10 || data[4] != '-' || data[7] != '-') return 0;
  memcpy(text, data, 10);
  int year = atoi(text), month = atoi(text + 5), day = atoi(text + 8);
  if (year < 1969 || year > 1970 || month != 12) return 0;
  if (day > 28 && day < 32) abort();
  return 0;
}
