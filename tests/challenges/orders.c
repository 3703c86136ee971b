/* Numbers of 2 to 16 bytes, each in the other order of bytes than in magics.c, at places that are no multiples of 2. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint16_t two;
  uint32_t four;
  uint64_t eight, high, low;
  if (size < 40) return 0;
  memcpy(&two, data + 1, 2);
  memcpy(&four, data + 5, 4);
  memcpy(&eight, data + 11, 8);
  memcpy(&high, data + 21, 8);
  memcpy(&low, data + 29, 8);
  if (__builtin_bswap16(two) != 0xa55b) return 0;
  if (four != 0x7f3e9d1c) return 0;
  if (eight != 0x8f1d3b5a79e6c402) return 0;
  unsigned __int128 sixteen = (unsigned __int128)__builtin_bswap64(high) << 64 | __builtin_bswap64(low);
  if (sixteen != ((unsigned __int128)0xf1e2d3c4b5a69788 << 64 | 0x1021324354657687)) return 0;
  abort();
}
