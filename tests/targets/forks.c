/* Forks of all kinds, for what the fuzzer takes for shut: the inputs of the test take the first way of each. Line numbers
 * are part of the test. */
#include <stdint.h>
#include <stdlib.h>

static volatile int sum;

static void many(int n) {
  while (n--)
    if (n & 1) sum++;
    else sum--;
}

static void caller(int n) {
  if (n) many(n);
}

__attribute__((noinline)) static void by_pointer(int n) { sum += n; }
void (*volatile pointer)(int) = by_pointer;

void nobody(int n) { sum -= n; }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 4) return 0;
  if (data[0] == 'X') caller(data[1]);
  switch (data[1]) {
  case 'a': sum += 1; break;
  case 'b': sum += data[2]; many(1); break;
  case 'c': sum -= data[3]; break;
  case 'd': sum *= data[3]; break;
  case 'e': sum ^= data[2]; break;
  }
  if (data[2] == 'P') pointer(1);
  static const void *const places[] = {&&zero, &&one};
  goto *places[data[3] & 1];
zero:
  sum = 0;
one:
  return 0;
}
