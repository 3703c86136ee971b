/* An ordinary main() for the harnesses: one input, from the file that is named or from standard input,
 * then the end. */
#include <stdint.h>
#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(int argc, char **argv) {
  static uint8_t data[1 << 20];
  FILE *file = argc > 1 ? fopen(argv[1], "rb") : stdin;
  if (!file) return 1;
  size_t size = fread(data, 1, sizeof data, file);
  return LLVMFuzzerTestOneInput(data, size);
}
