/* Inputs are valid if they begin with 'a'; whatever comes after the assumption is executed for all
 * of them, in this function, in a loop that calls nothing, and in another function. */
#include <stdio.h>
#include <stdlib.h>

#include "afl_valid.h"

static volatile int sum;

__attribute__((noinline)) static void loop(int times) {
  int n = 0;
  for (int i = 0; i < times; i++) n = n * 3 + sum;
  sum = n;
}

static int read_input(const char *text) {
  ASSUME_OR_RETURN(text[0] == 'a', 1);
  return 0;
}

static int one(void) {
  char text[8] = {0};
  if (fread(text, 1, 7, stdin) == 0) return 3;
  int failed = read_input(text);
  loop(text[1]);
  if (failed && text[1] == 'z') puts("never counted");
  return 0;
}

int main(void) {
#ifdef __AFL_COMPILER
  while (__AFL_LOOP(10)) {
    rewind(stdin);
    one();
  }
  return 0;
#else
  return one();
#endif
}
