/* Ten bugs for AddressSanitizer, one for each digit that an input begins with. Two ways lead to the
 * functions before each, so there are twice as many stacks. */
#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

#define ALONE __attribute__((noinline))

static volatile char sink;
char table[16];

ALONE static void read_behind(char *block, int at) { sink = block[at]; }
ALONE static void write_behind(char *block, int at) { block[at] = 1; }
ALONE static void read_freed(char *block) {
  free(block);
  sink = *(volatile char *)block;
}
ALONE static void free_again(char *block) {
  free(block);
  free(block);
}
ALONE static void fill_stack(int size) {
  volatile char small[8];
  for (int i = 0; i < size; i++) small[i] = 1;
}
ALONE static void read_table(int at) { sink = table[at]; }
ALONE static void poke_null(int at) { *(volatile char *)(long)at = 1; }
ALONE static void check(int value) { assert(value > 1000); }
ALONE static void give_up(void) { abort(); }
ALONE static void trap(void) { __builtin_trap(); }

ALONE static void fail(char digit, char *block, int number) {
  switch (digit) {
    case '0': read_behind(block, 8 + number); break;
    case '1': write_behind(block, 8 + number); break;
    case '2': read_freed(block); break;
    case '3': free_again(block); break;
    case '4': fill_stack(16 + number); break;
    case '5': read_table(16 + number); break;
    case '6': poke_null(number); break;
    case '7': check(number); break;
    case '8': give_up(); break;
    case '9': trap(); break;
  }
}
ALONE static void inner(char digit, char *block, int number) { fail(digit, block, number); }
ALONE static void outer(char digit, char *block, int number) { inner(digit, block, number); }
ALONE static void even(char digit, char *block, int number) { outer(digit, block, number); }
ALONE static void odd(char digit, char *block, int number) { outer(digit, block, number); }

int main(void) {
  char data[256] = {0};
  if (read(0, data, sizeof data) < 2) return 0;
  (data[1] & 1 ? odd : even)(data[0], malloc(8), data[1] & 7);
  return 0;
}
