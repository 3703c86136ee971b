/* Writes by every means: as many lines of 11 bytes as the digit that is read, then some of each. */
#include <stdio.h>
#include <unistd.h>

int main(void) {
  int n = getchar() - '0';
  for (int i = 0; i < n; i++) printf("0123456789\n");
  puts("abcd");
  fputs("abcdef", stdout);
  fwrite("0123456789abcdef", 2, 8, stdout);
  putchar('a');
  fprintf(stdout, "%d\n", 10 * n);
  fflush(stdout);
  char text[100] = {0};
  if (write(-1, text, sizeof text) > 0 || snprintf(text, sizeof text, "%d", n) > 90) return 1;
  return write(1, text, sizeof text) != sizeof text;
}
