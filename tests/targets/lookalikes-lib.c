/* See lookalikes.c. */
#include <stddef.h>

int lib_equal(const unsigned char *a, const unsigned char *b, size_t length) {
  for (size_t i = 0; i < length; i++)
    if (a[i] != b[i]) return 0;
  return 1;
}

/* By their names, the first one compares, the second one does not. */
int lib_match(void *context, const char *b) { return !context && b; }
int lib_apply(const char *a, const char *b) { return *a == *b; }

static int by_letters(const char *a, const char *b) {
  while (*a && *a == *b) a++, b++;
  return *a - *b;
}

int (*lib_chosen(void))(const char *, const char *) { return by_letters; }
