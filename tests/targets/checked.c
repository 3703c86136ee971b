// Works only on inputs whose last byte is the sum of the others.
#include <stdio.h>
#include <stdlib.h>

int main(void) {
  unsigned char input[64];
  size_t size = fread(input, 1, sizeof input, stdin);
  unsigned char sum = 0;
  for (size_t i = 0; i + 1 < size; i++) sum += input[i];
  if (size < 2 || sum != input[size - 1]) return 0;
  void *volatile memory = malloc(1000 * (size - 1));
  free(memory);
  return 0;
}
