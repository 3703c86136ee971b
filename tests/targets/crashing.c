/* Crashes on every input that begins with 'Q', on paths that differ by what follows. */
#include <stdlib.h>
#include <unistd.h>

static volatile int seen;

int main(void) {
  unsigned char data[64] = {0};
  if (read(0, data, sizeof data) < 1 || data[0] != 'Q') return 0;
  if (data[1] & 1) seen = 1;
  if (data[2] & 2) seen = 2;
  if (data[3] & 4) seen = 3;
  abort();
}
