/* bzip2: a stream in memory, at most 256 KiB of what it holds; the parity of byte 0 selects the slow decoder. */
#include <stddef.h>
#include <stdint.h>

#include "bzlib.h"

void bz_internal_error(int code) { (void)code; }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static char output[256 << 10];
  unsigned length = sizeof output;
  if (size < 1) return 0;
  BZ2_bzBuffToBuffDecompress(output, &length, (char *)data + 1, (unsigned)size - 1, data[0] & 1, 0);
  return 0;
}
