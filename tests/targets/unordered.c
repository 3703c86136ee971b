/* Comparisons of floating-point numbers, also with what is none: aborts if one of them is wrong. */
#include <math.h>
#include <stdlib.h>

static volatile double doubles[] = {NAN, -INFINITY, -1.5, 0, 1.5, INFINITY};
static volatile float floats[] = {NAN, -INFINITY, -1.5f, 0, 1.5f, INFINITY};

static void check(int i, int j, int less, int at_most, int equal, int differs) {
  int are_numbers = i && j;
  if (less != (are_numbers && i < j) || at_most != (are_numbers && i <= j)) abort();
  if (equal != (are_numbers && i == j) || differs == equal) abort();
}

int main(void) {
  for (int i = 0; i < 6; i++)
    for (int j = 0; j < 6; j++) {
      double a = doubles[i], b = doubles[j];
      float c = floats[i], d = floats[j];
      check(i, j, a < b, a <= b, a == b, a != b);
      check(i, j, c < d, c <= d, c == d, c != d);
    }
  return 0;
}
