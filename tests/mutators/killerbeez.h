/* A Killerbeez module for tests: a table, and functions that count. A module includes this and puts
 * its own functions into the table in `change`. The functions have the names that all modules export. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOTAL 5 /* inputs until it is exhausted */

struct object {
  int made;
  char *options, *input;
  size_t length;
};

struct table {
  void *(*create)(char *options, char *state, char *input, size_t length);
  void (*cleanup)(void *);
  int (*mutate)(void *, char *buffer, size_t size);
  int (*mutate_extended)(void *, char *buffer, size_t size, uint64_t flags);
  char *(*get_state)(void *);
  void (*free_state)(char *);
  int (*set_state)(void *, char *);
  int (*get_current_iteration)(void *);
  int (*get_total_iteration_count)(void *);
  void (*get_input_info)(void *, int *count, size_t **sizes);
  int (*set_input)(void *, char *, size_t);
  int (*help)(char **);
};

static void change(struct table *table);

void *create(char *options, char *state, char *input, size_t length) {
  if (!length) return NULL;
  struct object *object = calloc(1, sizeof *object);
  object->options = options ? strdup(options) : NULL;
  object->input = memcpy(malloc(length), input, length);
  object->length = length;
  if (state) object->made = atoi(state);
  return object;
}

void cleanup(void *data) {
  struct object *object = data;
  free(object->options);
  free(object->input);
  free(object);
}

/* The input with a number for its first byte. */
int mutate(void *data, char *buffer, size_t size) {
  struct object *object = data;
  if (size < object->length) return -1;
  if (object->made >= TOTAL) return 0;
  memcpy(buffer, object->input, object->length);
  buffer[0] = '0' + object->made++;
  return object->length;
}

int mutate_extended(void *data, char *buffer, size_t size, uint64_t flags) {
  (void)data, (void)buffer, (void)size, (void)flags;
  return -1;
}

char *get_state(void *data) {
  char *text = malloc(16);
  snprintf(text, 16, "%d", ((struct object *)data)->made);
  return text;
}

void free_state(char *text) { free(text); }

/* A seed or a state gets an object of its own. */
int set_state(void *data, char *text) { (void)data, (void)text, abort(); }
int set_input(void *data, char *input, size_t length) { (void)data, (void)input, (void)length, abort(); }

void get_input_info(void *data, int *count, size_t **sizes) {
  *count = 1;
  *sizes = malloc(sizeof **sizes);
  **sizes = ((struct object *)data)->length;
}

int help(char **text) {
  *text = strdup("counts, and takes no options");
  return 0;
}

void init(struct table *table) {
  *table = (struct table){.create = create, .cleanup = cleanup, .mutate = mutate,
                          .mutate_extended = mutate_extended, .get_state = get_state,
                          .free_state = free_state, .set_state = set_state,
                          .get_input_info = get_input_info, .set_input = set_input, .help = help};
  change(table);
}
