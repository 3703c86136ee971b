/* Four checks of UndefinedBehaviorSanitizer in one function, two of them of one kind. */
#include <stdio.h>

static int table[4];

__attribute__((noinline)) static int check(const unsigned char *s, int n) {
  if (s[0] == 'a') return n + s[1] * 0x1000000;
  if (s[0] == 's') return 1 << (n & 255);
  if (s[0] == 'i') return table[n & 255];
  if (s[0] == 'd') return n / (s[1] / 64); /* digits are below 64 */
  return 0;
}

int main(void) {
  unsigned char s[16] = {0};
  if (fread(s, 1, sizeof s - 1, stdin) < 2) return 0;
  return check(s, 0x7fffff00 | 0xc8) == 12345;
}
