/* Functions that compare, under names of their own: of the program, of a file that is not instrumented (lookalikes-lib.c),
 * and by pointer. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int lib_equal(const uint8_t *a, const uint8_t *b, size_t length);
int lib_match(void *context, const char *b);
int lib_apply(const char *a, const char *b);
int (*lib_chosen(void))(const char *, const char *);

static char plain(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c; }

static int same(const char *a, const char *b) {
  for (; *a || *b; a++, b++)
    if (plain(*a) != plain(*b)) return 0;
  return 1;
}

static int counts(int *a, const char *b) {
  for (; *b; b++) ++*a;
  return *a;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char text[32] = "";
  int number = 0, (*by)(const char *, const char *) = lib_chosen();
  if (size < 16) return 0;
  memcpy(text, data, size < 31 ? size : 31);
  if (same(text, "by-name")) return 1;
  if (lib_equal(data, (const uint8_t *)"\x01\x02\x03\x04", 4)) return 2;
  int order = by(text + 4, "chosen");
  if (!order && lib_equal(data, (const uint8_t *)"KEY!", 4)) abort();
  if (lib_match((void *)8, (char *)16)) return 4;
  if (!lib_apply(text, "action")) number++;
  return counts(&number, text) == 77;
}
