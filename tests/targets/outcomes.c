/* Ends as its first argument says, on an input that begins with 'Q'; otherwise well.
 *   outcomes HOW [FILE]     the input comes from stdin unless a file is named */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef BALLAST /* a program that is too large for a small memory limit */
volatile char ballast[BALLAST];
#endif

static int is(const char *how, const char *name) { return !strcmp(how, name); }

static void two_sites(const char *data) {
  if (data[1] == 'Q') abort();
  fputs("the other site\n", stderr);
  abort();
}

static void eat_memory(void) {
  for (int i = 0; i < 64; i++) {
    volatile char *block = malloc(16 << 20);
    if (!block) abort(); /* this is how most programs take it */
    block[0] = 1;
  }
}

int main(int argc, char **argv) {
  char data[64] = {0};
  int input = argc > 2 ? open(argv[2], O_RDONLY) : 0;
  ssize_t n = read(input, data, sizeof data);
  if (n < 1 || data[0] != 'Q') return 0;
  const char *how = argv[1];
  if (is(how, "segv")) *(volatile int *)0 = 1;
  if (is(how, "abort")) abort();
  if (is(how, "sites")) two_sites(data);
  if (is(how, "hang")) for (;;) pause();
  if (is(how, "exit")) exit(77);
  if (is(how, "memory")) eat_memory();
  if (is(how, "kill")) raise(SIGKILL);
  if (is(how, "late")) usleep(1500 * 1000), abort();
  return 0;
}
