/* Comparisons of every kind, with a harness for libFuzzer. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <stdio.h>

void *memmem(const void *, size_t, const void *, size_t);

static int letters(const char *text, int length) {
  int count = 0;
  for (int i = 0; i < length; i++)
    if (text[i] == 'Q') count++;
  return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char text[64] = "";
  if (size < 16) return 0;
  memcpy(text, data, size < 63 ? size : 63);
  uint32_t word;
  uint64_t number = strtoul(text + 4, NULL, 10);
  memcpy(&word, data, 4);
  int sum = 0;
  if (word * 3 + 7 == 0x12345678) sum++;
  if (number > 123456789) sum++;
  if ((int16_t)word < -3) sum++;
  if (!memcmp(text, "MAGIC", 5)) sum++;
  if (!strcmp(text, "whole")) sum++;
  if (!strncasecmp(text + 1, "AgIxx", 5)) sum++;
  if (strstr(text, "needle")) sum++;
  if (memmem(text, 16, "in\0side", 7)) sum++;
  if (number / 8.0 == 1.25) sum++;
  if ((unsigned __int128)number * number == (unsigned __int128)1 << 70) sum++;
  switch (text[3]) {
    case 'a': sum += 2; break;
    case 'b': sum += 3; break;
    case 'z': sum += 5; break;
  }
  sum += letters(text, 40);
  if (text[15] == '!') abort();
  if (sum == 99) puts("ninety-nine");
  return 0;
}
