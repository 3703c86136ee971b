/* Floating-point numbers: equal ones, calculated ones, and a product of two. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  float narrow;
  double wide, first, second;
  if (size < 32) return 0;
  memcpy(&narrow, data, 4);
  memcpy(&wide, data + 5, 8);
  memcpy(&first, data + 13, 8);
  memcpy(&second, data + 21, 8);
  if (narrow != -273.15f) return 0;
  if (wide * 1.8 + 32 < 451 || wide * 1.8 + 32 > 451.5) return 0;
  if (first < 1 || second < 1) return 0;
  if (first * second > 1e6 && first * second < 1.001e6) abort();
  return 0;
}
