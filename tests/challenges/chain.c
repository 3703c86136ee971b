/* Eight numbers, one behind the other. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const uint32_t wanted[] = {0x3a91b7c5, 0x77aa01fe, 0x90817263, 0x5544ffee,
                                    0x0badcafe, 0x1337c0de, 0x99887766, 0xa5a5c3c3};
  if (size < sizeof wanted) return 0;
  for (int i = 0; i < 8; i++) {
    uint32_t word;
    memcpy(&word, data + 4 * i, 4);
    if (word != wanted[i]) return 0;
  }
  abort();
}
