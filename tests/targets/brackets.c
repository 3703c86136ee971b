/* A harness with a few branches, and a crash behind four letters. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static volatile int sink;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  for (size_t i = 0; i < size; i++) {
    if (data[i] == '(') sink++;
    if (data[i] == ')') sink--;
    if (data[i] == '[') sink += 2;
  }
#ifndef SOUND
  if (size >= 4 && !memcmp(data, "BUG!", 4)) abort();
#endif
  return 0;
}
