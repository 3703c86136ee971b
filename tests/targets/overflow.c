/* Misuses its heap without crashing by itself: the first byte says how. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
  unsigned char data[64] = {0};
  FILE *file = argc > 1 ? fopen(argv[1], "rb") : stdin;
  if (!file || fread(data, 1, sizeof data, file) < 2) return 1;
  volatile char *block = malloc(32);
  char *small = malloc(5);
  if (!block || !small) return 1;
  memset((char *)block, 'a', 32);
  switch (data[0]) {
    case 'r': printf("%d\n", block[32 + data[1] % 8] & 0); break; /* reads behind a block */
    case 'w': block[32 + data[1] % 8] = 1; break;                 /* writes behind it */
    case 's': ((volatile char *)small)[5] = 1; break;             /* in the gap of its alignment, seen by free */
    case 'u': block[-1] = 1; break;                               /* in front of it */
    case 'f': /* uses a freed pointer, where libc leaves a block as it was */
      ((char *volatile *)block)[2] = small;
      free((char *)block);
      if (*((char *volatile *)block)[2] == 'x') puts("x");
      return 0;
    case 'F': /* reads a freed block, whose content no pointer is */
      free((char *)block);
      printf("%d\n", block[data[1] % 8] & 0);
      return 0;
    case 'W': /* writes to a freed block that is not used again */
      free((char *)block);
      block[data[1] % 8] = 1;
      return 0;
    case 'U': block[-1] = 1; return 0; /* in front of a block that is never freed */
    case 'd': /* frees twice: libc sees that as well */
      free((char *)block);
      break;
  }
  free(small);
  free((char *)block);
  return 0;
}
