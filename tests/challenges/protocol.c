/* A protocol: commands change the state, and each is taken in one state only. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  enum { CLOSED, GREETED, NAMED, TRUSTED } state = CLOSED;
  for (size_t at = 0; at + 4 <= size; at += 4) {
    uint32_t command = (uint32_t)data[at] << 24 | data[at + 1] << 16 | data[at + 2] << 8 | data[at + 3];
    switch (command) {
      case 0x48454c4f: state = state == CLOSED ? GREETED : CLOSED; break;
      case 0x55534552: state = state == GREETED ? NAMED : CLOSED; break;
      case 0x50415353: state = state == NAMED ? TRUSTED : CLOSED; break;
      case 0x51554954:
        if (state == TRUSTED) abort();
        return 0;
    }
  }
  return 0;
}
