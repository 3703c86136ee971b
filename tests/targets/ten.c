/* Ten gates that do not depend on each other, each on bytes of its own. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile int passed;

static void pass(int gate) {
  passed |= 1 << gate;
}

static uint32_t big(const uint8_t *data) {
  return (uint32_t)data[0] << 24 | data[1] << 16 | data[2] << 8 | data[3];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint32_t number;
  uint16_t half;
  uint64_t wide;
  char text[6] = {0};
  if (size != 64) return 0;
  memcpy(&number, data, 4);
  if (number == 0x1badb002) pass(0);
  if (big(data + 4) == 0x89504e47) pass(1);
  if (!memcmp(data + 8, "RIFF", 4)) pass(2);
  memcpy(&half, data + 12, 2);
  if (half == 0xfeed) pass(3);
  if (!strncmp((const char *)data + 14, "version", 7)) pass(4);
  memcpy(&number, data + 24, 4);
  switch (number) {
    case 0x11223344: pass(5); break;
    case 0x55667788: pass(5); break;
  }
  memcpy(&wide, data + 28, 8);
  if (wide == 0x0123456789abcdef) pass(6);
  memcpy(text, data + 36, 5);
  if (atoi(text) == 31337) pass(7);
  memcpy(&number, data + 44, 4);
  if ((number ^ 0x5a5a5a5a) == 0xcafef00d) pass(8);
  number = 0;
  for (int i = 48; i < 64; i++) number = number * 31 + data[i];
  if (number == 0x12345678) pass(9);
  return 0;
}
