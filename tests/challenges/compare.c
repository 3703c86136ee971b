/* A compare function of the program's own that folds case and takes '_' for '-'. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static char plain(char c) {
  if (c >= 'A' && c <= 'Z') return (char)(c + 32);
  return c == '_' ? '-' : c;
}

__attribute__((noinline)) static int compare(const char *a, const char *b) {
  for (; *b; a++, b++)
    if (plain(*a) != plain(*b)) return plain(*a) < plain(*b) ? -1 : 1;
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const char *text = (const char *)data;
  if (size < 32 || compare(text, "by-name")) return 0;
  if (!compare(text + 9, "cipher")) abort();
  return 0;
}
