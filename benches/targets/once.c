/* An ordinary main() for the harnesses: one input from standard input, then the end. */
#include <stdint.h>
#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(void) {
  static uint8_t data[1 << 20];
  size_t size = fread(data, 1, sizeof data, stdin);
  return LLVMFuzzerTestOneInput(data, size);
}
