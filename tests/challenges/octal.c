/* A header with the sum of its bytes in octal digits, which count as blanks, as tar has it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static unsigned octal(const uint8_t *digits, size_t most) {
  unsigned number = 0;
  for (size_t i = 0; i < most && digits[i] >= '0' && digits[i] <= '7'; i++) number = number * 8 + (digits[i] - '0');
  return number;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 44) return 0;
  unsigned sum = 0;
  for (size_t i = 0; i < 44; i++) sum += i >= 20 && i < 28 ? ' ' : data[i];
  if (octal(data + 20, 8) != sum) return 0;
  if (memcmp(data + 28, "ustar", 5)) return 0;
  uint32_t number;
  memcpy(&number, data + 36, 4);
  if (number != 0x5eed1e55) return 0;
  if (octal(data + 8, 6) != 0644) return 0;
  abort();
}
