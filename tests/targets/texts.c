/* Reads a text of brackets, strings and numbers from a file or standard input, into a tree on the heap. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct node {
  char *text;
  struct node *first, *next;
};

static const char *at;

static struct node *value(int depth);

static struct node *list(char end, int depth) {
  struct node *self = calloc(1, sizeof *self), **place = &self->first;
  for (at++; *at && *at != end;) {
    if (*at == ',' || *at == ':' || isspace((unsigned char)*at)) {
      at++;
      continue;
    }
    *place = value(depth + 1);
    if (!*place) break;
    place = &(*place)->next;
  }
  if (*at == end) at++;
  return self;
}

static struct node *word(void) {
  const char *start = at;
  struct node *self = calloc(1, sizeof *self);
  if (*at == '"') {
    for (at++; *at && *at != '"'; at++)
      if (*at == '\\' && at[1]) at++;
    if (*at) at++;
  } else {
    while (*at && !strchr(",:[]{}\" \n", *at)) at++;
    if (at == start) at++;
  }
  self->text = strndup(start, (size_t)(at - start));
  return self;
}

static struct node *value(int depth) {
  if (depth > 20 || !*at) return NULL;
  if (*at == '[') return list(']', depth);
  if (*at == '{') return list('}', depth);
  return word();
}

static double sum(const struct node *self) {
  double total = 0;
  for (; self; self = self->next) {
    if (self->text) total += strtod(self->text, NULL);
    total += sum(self->first);
  }
  return total;
}

static void release(struct node *self) {
  while (self) {
    struct node *next = self->next;
    release(self->first);
    free(self->text);
    free(self);
    self = next;
  }
}

int main(int argc, char **argv) {
#ifdef DEFERRED
  char *before = strdup("kept over all runs");
  __AFL_INIT();
  free(before);
#endif
  FILE *file = argc > 1 ? fopen(argv[1], "r") : stdin;
  if (!file) return 2;
  char *text = malloc(65536);
  size_t length = fread(text, 1, 65535, file);
  text[length] = 0;
  if (file != stdin) fclose(file);
  at = text;
  struct node *tree = value(0);
  printf("%f\n", sum(tree));
  release(tree);
  free(text);
  return tree ? 0 : 1;
}
