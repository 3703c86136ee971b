/* Code behind hashes: nobody finds a way there, so who has been there has taken over an input. With
 * mem, the domain of allocations, the second byte of the input is a size. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static volatile int place;

int main(void) {
  static unsigned char data[64];
  long length = read(0, data, sizeof data);
  uint64_t hash = 0xcbf29ce484222325u;
  for (int i = 0; i < 5; i++) hash = (hash ^ data[i]) * 0x100000001b3u;
  if (length == 5) {
    if (hash == 0x8ac625bb85ed202bu) place = 1; /* "alpha" */
    if (hash == 0xb0ba15ea629b072u) place = 2; /* "betaa" */
    if (hash == 0x229176bd1f6ba96au) place = 3; /* "gamma" */
  }
  if (data[0] == 'm') {
    char *block = malloc(data[1] * 1000u);
    if (block) *(volatile char *)block = 1;
    free(block);
  }
  return 0;
}
