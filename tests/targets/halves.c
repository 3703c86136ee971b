/* Crashes on "HALF", letter by letter. As it is a program; with -DLIBRARY the part that looks at the input,
 * and with -DPROGRAM the rest, which is linked with it. */
#include <stdio.h>
#include <stdlib.h>

void look(const unsigned char *data, size_t length);

#ifndef PROGRAM
static volatile int depth;

__attribute__((noinline)) void look(const unsigned char *data, size_t length) {
  if (length < 4 || data[0] != 'H') return;
  depth = 1;
  if (data[1] != 'A') return;
  depth = 2;
  if (data[2] != 'L') return;
  depth = 3;
  if (data[3] == 'F') abort();
}
#endif

#ifndef LIBRARY
int main(int argc, char **argv) {
  unsigned char data[64];
  FILE *file = argc > 1 ? fopen(argv[1], "rb") : stdin;
  look(data, file ? fread(data, 1, sizeof data, file) : 0);
  return 0;
}
#endif
