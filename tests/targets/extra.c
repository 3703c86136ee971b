/* Counters of the program's own: the first byte of the input chooses one. No branch depends on it. -DMAIN is an ordinary
 * program, -DLIBRARY the library with the counters of one that is built with -DUSER. */
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

int note(uint8_t which);

#ifndef USER
__attribute__((section("__libfuzzer_extra_counters"))) static uint8_t counters[300];

__attribute__((noinline)) int note(uint8_t which) {
  counters[which]++;
  return 0;
}
#endif

#ifndef LIBRARY
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) { return note(size ? data[0] : 0); }
#ifdef MAIN
int main(void) {
  uint8_t first = 0;
  if (read(0, &first, 1) < 0) return 1;
  return LLVMFuzzerTestOneInput(&first, 1);
}
#endif
#endif
