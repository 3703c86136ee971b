/* The same cascade as demo.c, with a feedback map written by hand: the program itself says how
 * close it is. Built by an ordinary compiler the macros vanish. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "waypoints.h"

FUZZFACTORY_DSF_NEW(closeness, 4, FUZZFACTORY_REDUCER_MAX, 0);

static void reached(char point) { printf("Demo: Reached point %c\n", point); }

static inline int equal_bits(int32_t a, int32_t b) {
  return 32 - __builtin_popcount((uint32_t)a ^ (uint32_t)b);
}

static void *cascade(int32_t a, int32_t b) {
  if (a % 3 != 2) return NULL;
  reached('A');
  if (a <= 0x1000) return NULL;
  reached('B');
  FUZZFACTORY_DSF_MAX(closeness, 0, equal_bits(b, 0x1001CAFE));
  if (b != 0x1001CAFE) return NULL;
  reached('C');
  FUZZFACTORY_DSF_MAX(closeness, 1, equal_bits(a, b));
  if (a == b) {
    reached('D');
    abort();
  }
  reached('E');
  FUZZFACTORY_DSF_MAX(closeness, 2, a);
  return malloc((size_t)a);
}

int main(void) {
  int32_t in[2] = {0, 0};
  if (fread(in, 1, sizeof in, stdin) > sizeof in) return 1; /* a short input leaves zeros */
  printf("%d, %d\n", in[0], in[1]);
  free(cascade(in[0], in[1]));
  return 0;
}
