/* Recursion as deep as the digit that is read: left by returns, and left by one long jump. */
#include <setjmp.h>
#include <stdio.h>

static jmp_buf back;

__attribute__((noinline)) static int recurse(int n) {
  volatile char pad[100] = {0};
  pad[n] = 1;
  return n == 0 ? 1 : recurse(n - 1) + pad[n];
}

__attribute__((noinline)) static int jump(int n) {
  volatile char pad[100] = {0};
  pad[n] = 1;
  if (n == 0) longjmp(back, 1);
  return jump(n - 1) + pad[n];
}

int main(void) {
  volatile int n = getchar() - '0';
  for (volatile int i = 0; i < 3; i++) {
    if (setjmp(back) == 0) jump(n);
    recurse(n);
  }
  return 0;
}
