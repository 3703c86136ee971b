/* Counts the words among the first 512 bytes of its input with a hash table. What input fills one
 * chain?
 *
 *   WAYPOINTS=perf ffuzz-cc words.c -o words && ffuzz -p -i seeds -o out ./words
 *
 * An answer, beside this file: words-worst, words of two letters that all fall into one bucket. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 512
#define BUCKETS 64

struct word {
  struct word *next;
  unsigned count;
  size_t length;
  const char *text;
};

static struct word *table[BUCKETS];

static unsigned hash(const char *text, size_t length) {
  unsigned h = 0;
  for (size_t i = 0; i < length; i++) h = 33 * h + (unsigned char)text[i];
  return h % BUCKETS;
}

static void count_word(const char *text, size_t length) {
  struct word **place = &table[hash(text, length)];
  while (*place && ((*place)->length != length || memcmp((*place)->text, text, length) != 0))
    place = &(*place)->next;
  if (*place == NULL) {
    *place = calloc(1, sizeof **place);
    if (*place == NULL) exit(1);
    (*place)->length = length;
    (*place)->text = text;
  }
  (*place)->count++;
}

int main(void) {
  static char input[MOST];
  size_t size = fread(input, 1, sizeof input, stdin);
  for (size_t at = 0; at < size;) {
    size_t start = at;
    while (at < size && !isspace((unsigned char)input[at])) at++;
    if (at > start) count_word(input + start, at - start);
    at++;
  }
  for (int i = 0; i < BUCKETS; i++)
    for (struct word *word = table[i]; word; word = word->next)
      printf("%u %.*s\n", word->count, (int)word->length, word->text);
  return 0;
}
