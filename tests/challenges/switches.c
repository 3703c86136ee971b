/* Nested switches of one, two, four and eight bytes, with few and with many cases. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint16_t two;
  uint32_t four;
  uint64_t eight;
  if (size < 24) return 0;
  memcpy(&two, data + 1, 2);
  memcpy(&four, data + 4, 4);
  memcpy(&eight, data + 9, 8);
  switch (data[0]) {
    case 3: return 1;
    case 17: return 2;
    case 99:
      switch (two) {
        case 0x1001: return 3;
        case 0x2002: return 4;
        case 0x8fe1:
          switch (__builtin_bswap32(four)) {
            case 0x11223344: return 5;
            case 0x55667788: return 6;
            case 0x99aabbcc: return 7;
            case 0xddeeff00:
              switch (eight) {
                case 0x1000000000000001: return 8;
                case 0x2300000000000032: abort();
              }
          }
      }
  }
  return 0;
}
