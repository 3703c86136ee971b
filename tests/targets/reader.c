/* Reads the file that its last argument names, and nothing without one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
  if (argc < 2) return puts("usage: reader [-q] FILE"), 1;
  FILE *file = fopen(argv[argc - 1], "rb");
  if (!file) return perror(argv[argc - 1]), 1;
  char data[64] = {0};
  if (strcmp(argv[1], "-q") && fread(data, 1, sizeof data - 1, file) == 0) return 1;
  if (data[0] == 'A') puts("A");
  if (data[0] == 'B') puts("B");
  if (strstr(data, "longer")) puts("longer");
  fclose(file);
  return 0;
}
