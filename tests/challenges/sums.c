/* Every byte of a region counts: a sum, an exclusive or, and a weighted sum between bounds. */
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 40) return 0;
  uint32_t sum = 0, weighted = 0;
  uint8_t all = 0;
  for (int i = 0; i < 12; i++) sum += data[i];
  if (sum != 2345) return 0;
  for (int i = 12; i < 28; i++) all ^= data[i];
  if (all != 0x93) return 0;
  for (int i = 28; i < 40; i++) weighted += data[i] * (uint32_t)(40 - i);
  if (weighted < 15000 || weighted > 15003) return 0;
  abort();
}
