// A block for each length of its input.
#include <stdio.h>
#include <unistd.h>

int main(void) {
  static char input[64];
  ssize_t length = read(0, input, sizeof input);
  switch (length) {
    case 5: puts("five"); break;
    case 6: puts("six"); break;
    case 7: puts("seven and more"); putchar(input[6]); break;
    case 8: puts("eight"); break;
    case 9: puts("nine, or nearly"); break;
    default: puts("other");
  }
  return 0;
}
