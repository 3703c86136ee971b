/* Code in two segments, with -Wl,--section-start=hotcode=0x600000: a crash on an input that begins with FUZ. */
#include <stdlib.h>
#include <unistd.h>

__attribute__((section("hotcode"), noinline)) static int hot(const char *b) {
  if (b[0] != 'F') return 1;
  if (b[1] != 'U') return 2;
  if (b[2] == 'Z') abort();
  return 3;
}

int main(void) {
  char b[8] = {0};
  if (read(0, b, 7) < 1) return 0;
  return hot(b) == 9;
}
