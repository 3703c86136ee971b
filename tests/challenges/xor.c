/* Fields tied by exclusive or: two with a constant, three with each other, and a key that a text is under. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint32_t a, b, c;
  if (size < 40) return 0;
  memcpy(&a, data + 3, 4);
  memcpy(&b, data + 11, 4);
  memcpy(&c, data + 19, 4);
  if (a == b || (a ^ b) != 0x5ca1ab1e) return 0;
  if ((a ^ b ^ c) != 0x0ddba11) return 0;
  for (int i = 0; i < 6; i++)
    if ((uint8_t)(data[30 + i] ^ data[24]) != (uint8_t)"secret"[i]) return 0;
  if (data[24]) abort();
  return 0;
}
