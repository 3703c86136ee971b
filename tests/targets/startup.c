/* A startup that takes some milliseconds, then runs of microseconds. */
#include <unistd.h>

static volatile unsigned sum;

int main(void) {
  char b[8] = {0};
  for (unsigned i = 0; i < 3000000; i++) sum += i % 7 == 3 ? i : 1;
  if (read(0, b, 7) < 1) return 0;
  if (b[0] == 'F' && b[1] == 'U') return b[2] == 'Z';
  return 0;
}
