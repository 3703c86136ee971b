/* Sorts its input by swaps, which are executions of one block. The argument says how it ends. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static volatile unsigned swaps;

__attribute__((noinline)) static void sort(unsigned char *a, int n) {
  for (int i = 1; i < n; i++)
    for (int j = i; j > 0 && a[j - 1] > a[j]; j--) {
      unsigned char t = a[j];
      a[j] = a[j - 1];
      a[j - 1] = t;
      swaps++;
    }
}

int main(int argc, char **argv) {
  unsigned char bytes[512];
  int n = (int)fread(bytes, 1, sizeof bytes, stdin), how = argc > 1 ? argv[1][0] : 0;
  sort(bytes, n);
  printf("%u\n", swaps);
  if (how == '_') _exit(0);
  if (how == 'k') raise(SIGKILL);
  if (how == 'a') abort();
  for (volatile int forever = how == 'l'; forever;) pause();
  return 0;
}
