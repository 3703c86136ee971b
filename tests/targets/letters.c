// A and B take ways of their own, C crashes.
#include <stdio.h>
#include <stdlib.h>

int main(void) {
  char input[64];
  if (fread(input, 1, sizeof input, stdin) < 1) return 0;
  switch (input[0]) {
    case 'A': puts("a"); break;
    case 'B': puts("b"); break;
    case 'C': abort();
  }
  return 0;
}
