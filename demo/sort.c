/* Sorts up to 256 bytes of its input by insertion. What input takes longest?
 *
 *   WAYPOINTS=perf ffuzz-cc sort.c -o sort && ffuzz -p -i seeds -o out ./sort
 *
 * The answer, beside this file: sort-worst, all 256 bytes in descending order. */
#include <stdio.h>

#define MOST 256

int main(void) {
  unsigned char bytes[MOST];
  size_t count = fread(bytes, 1, sizeof bytes, stdin);
  for (size_t i = 1; i < count; i++) {
    unsigned char moved = bytes[i];
    size_t place = i;
    while (place > 0 && bytes[place - 1] > moved) {
      bytes[place] = bytes[place - 1];
      place--;
    }
    bytes[place] = moved;
  }
  fwrite(bytes, 1, count, stdout);
  return 0;
}
