/* Gates that are compare instructions, calls of functions that compare, and sums: one behind the other, in an ordinary
 * main that no compiler of ours has seen. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static unsigned char data[64];

int main(int argc, char **argv) {
  FILE *file = argc > 1 ? fopen(argv[1], "rb") : stdin;
  if (!file || !fread(data, 1, sizeof data, file)) return 1;
  uint32_t four;
  memcpy(&four, data, 4);
  if (four != 0xdeadbeef) return 2;
  uint64_t eight;
  memcpy(&eight, data + 4, 8);
  if (eight != 0x1122334455667788u) return 3;
  char word[12] = "";
  memcpy(word, data + 12, 11);
  if (strcasecmp(word, "Secret-Word")) return 4;
  if (atoi((char *)data + 24) != 31337) return 5;
  unsigned sum = 0;
  for (int i = 32; i < 48; i++) sum += data[i];
  if (sum != (unsigned)(data[48] | data[49] << 8)) return 6;
  /* Short blocks become exclusive ors, joined into one branch. */
  if (data[50] < 200 || memcmp(data + 51, "XYZ", 3)) return 7;
  abort();
}
