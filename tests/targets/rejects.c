/* A harness that rejects each input without a 'k' at its beginning, after work that would be worth a seed. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

static volatile int sink;

__attribute__((noinline)) static void look(const uint8_t *data, size_t size) {
  for (size_t i = 0; i < size; i++) {
    switch (data[i] & 15) {
      case 1: sink += 3; break;
      case 2: sink -= data[i]; break;
      case 3: sink ^= 5; break;
      case 4: sink *= 7; break;
      case 5: sink = 0; break;
      case 6: sink |= 64; break;
      default: break;
    }
  }
}

/* Runs at the end of a process, behind the harness. */
__attribute__((destructor)) static void finish(void) { sink = sink ? 1 : 2; }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size > 1 && data[0] == '!' && data[1] == 'x') abort();
  if (size == 0 || data[0] != 'k') {
    look(data, size);
    free(malloc(size * 100));
    return -1;
  }
  if (size > 1 && data[1] == 'a') look(data, size);
  return size > 2 ? 5 : 0;
}
