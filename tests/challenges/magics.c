/* Numbers of 2 to 16 bytes in both orders of bytes. The compiler makes one branch of the four comparisons. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint16_t two;
  uint32_t four;
  uint64_t eight;
  unsigned __int128 sixteen;
  if (size < 40) return 0;
  memcpy(&two, data, 2);
  memcpy(&four, data + 3, 4);
  memcpy(&eight, data + 8, 8);
  memcpy(&sixteen, data + 17, 16);
  if (two != 0xbeef) return 0;
  if (__builtin_bswap32(four) != 0xcafef00d) return 0;
  if (__builtin_bswap64(eight) != 0x1122334455667788) return 0;
  if (sixteen != (((unsigned __int128)0x0123456789abcdef) << 64 | 0xfedcba9876543210)) return 0;
  abort();
}
