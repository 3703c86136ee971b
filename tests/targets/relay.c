/* Behind a word that is not found by chance: a crash, a hang, some edges. `mem` has a size to raise. With
 * ALERTS it says where it is as a target does that is prepared for a static analysis. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile int seen;
static volatile char *memory;

static void alert(int number) {
#ifdef ALERTS
  printf("REACHED ID %d\n", number);
  fflush(stdout);
#else
  (void)number;
#endif
}

/* RLAY, and no constant that ffuzz-cc finds. The tests build without the comparison log, so only the domain `cmp` leads
 * there. */
static int is_word(uint32_t word) { return (word ^ 0x5a5a5a5a) == 0x031b1608; }

int main(int argc, char **argv) {
  unsigned char data[2048] = {0};
  FILE *file = argc > 1 ? fopen(argv[1], "r") : stdin;
  size_t length = file ? fread(data, 1, sizeof data, file) : 0;
#ifdef DIGIT_CRASHES
  if (data[0] == '0') abort();
#endif
  if (length < 6) return 0;
  uint32_t word;
  memcpy(&word, data, sizeof word);
  if (!is_word(word)) return 0;
  if (getenv("RELAY_SECRET") && data[4] == 'S') {
    seen = 9;
    alert(4);
  }
  alert(1);
  memory = malloc(data[5] * 100 + 1);
  if (data[4] == 'C') {
    alert(2);
    abort();
  }
  if (data[4] == 'H') {
    for (;;) seen++;
  }
  if (data[4] & 1) seen = 1;
  if (data[4] & 2) seen = 2;
  if (data[4] & 4) seen = 3;
  return 0;
}
