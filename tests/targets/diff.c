/* Some code that a diff has changed (line 7), and code that runs before and after it. */
#include <stdio.h>
#include <unistd.h>

__attribute__((noinline)) static int changed(int x) {
  volatile int times = 3;
  return x * times;
}

__attribute__((noinline)) static void later(int x) { puts(x > 100 ? "large" : "small"); }

int main(void) {
  while (__AFL_LOOP(10)) {
    char x = 0;
    if (read(0, &x, 1) != 1) return 1;
    if (x < 'b') x = (char)changed(x);
    later(x);
  }
  return 0;
}
