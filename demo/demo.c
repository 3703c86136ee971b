/* A program with two hard comparisons and one dangerous allocation.
 *
 * Reads two 32-bit integers a and b from standard input. `WAYPOINTS=cmp` leads a fuzzer through
 * the comparisons, `WAYPOINTS=mem` towards the largest allocation: 2147483645 bytes. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static void reached(char point) { printf("Demo: Reached point %c\n", point); }

static void *cascade(int32_t a, int32_t b) {
  if (a % 3 != 2) return NULL;
  reached('A');
  if (a <= 0x1000) return NULL;
  reached('B');
  if (b != 0x1001CAFE) return NULL;
  reached('C');
  if (a == b) {
    reached('D');
    abort();
  }
  reached('E');
  return malloc((size_t)a);
}

int main(void) {
  int32_t in[2] = {0, 0};
  if (fread(in, 1, sizeof in, stdin) > sizeof in) return 1; /* a short input leaves zeros */
  printf("%d, %d\n", in[0], in[1]);
  free(cascade(in[0], in[1]));
  return 0;
}
