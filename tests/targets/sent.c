// Reads the file that it is given, which somebody else has written.
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  FILE *file = argc > 1 ? fopen(argv[1], "r") : NULL;
  int first = file ? getc(file) : EOF;
  if (first == 'A') puts("a");
  if (first == 'B') puts("b");
  if (first == 'C') abort();
  return 0;
}
