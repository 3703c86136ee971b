/* One of each annotation of IJON, for an input of n bytes. */
#include <stdio.h>

#include "ijon.h"

__attribute__((noinline)) static void count(int n) {
  IJON_STACK_MAX(n);
  IJON_STACK_MIN(n);
}

int main(void) {
  char text[16] = {0};
  int n = (int)fread(text, 1, 15, stdin);
  IJON_SET(n);
  for (int i = 0; i < 3; i++) IJON_INC(5);
  IJON_MAX(n * 7);
  IJON_MAX(5, n * 9);
  IJON_MIN(n + 100);
  IJON_MIN(6, n + 200);
  IJON_MAX_AT(8, n * 11);
  IJON_MIN_AT(9, n + 300);
  count(n + 1000);
  count(n + 2000);
  IJON_DIST(n, 1000);
  IJON_CMP(n, 0xff);
  IJON_STRDIST(text, "abcd");
  IJON_BITS(n);
  IJON_STATE(n);
  IJON_SET(1);
  ijon_max(7, 1ull << 40);
  return IJON_CTX(n + 1) == n + 1 ? 0 : 1;
}
