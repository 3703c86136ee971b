/* One of each annotation of IJON, for an input of n bytes. */
#include <stdio.h>

#include "ijon.h"

int main(void) {
  char text[16] = {0};
  int n = (int)fread(text, 1, 15, stdin);
  IJON_SET(n);
  for (int i = 0; i < 3; i++) IJON_INC(5);
  IJON_MAX(n * 7);
  IJON_MAX(5, n * 9);
  IJON_MIN(n + 100);
  IJON_MIN(6, n + 200);
  IJON_DIST(n, 1000);
  IJON_CMP(n, 0xff);
  IJON_STRDIST(text, "abcd");
  IJON_BITS(n);
  IJON_STATE(n);
  IJON_SET(1);
  ijon_max(7, 1ull << 40);
  return IJON_CTX(n + 1) == n + 1 ? 0 : 1;
}
