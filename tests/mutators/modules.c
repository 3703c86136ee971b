/* One module per trap; -DNAME chooses. */
#include "killerbeez.h"

#if defined(COUNTER)
static void change(struct table *table) { (void)table; }

#elif defined(NUMBERS) /* module-0, module-1 … for ever */
static int own(void *data, char *buffer, size_t size) {
  return snprintf(buffer, size, "module-%d", ((struct object *)data)->made++);
}
static void change(struct table *table) { table->mutate = own; }

#elif defined(GROWER) /* fills the whole buffer */
static int own(void *data, char *buffer, size_t size) {
  (void)data;
  memset(buffer, 'g', size);
  return size;
}
static void change(struct table *table) { table->mutate = own; }

#elif defined(LIAR) /* returns more than there is room for */
static int own(void *data, char *buffer, size_t size) {
  (void)data;
  memset(buffer, 'l', size);
  return size + 100;
}
static void change(struct table *table) { table->mutate = own; }

#elif defined(OVERRUNS) /* writes behind its buffer */
static int own(void *data, char *buffer, size_t size) {
  (void)data;
  memset(buffer, 'o', size + 1);
  return size;
}
static void change(struct table *table) { table->mutate = own; }

#elif defined(DIRTY) /* shows what the buffer held before */
static int own(void *data, char *buffer, size_t size) {
  struct object *object = data;
  buffer[object->made++] = 'd';
  return size;
}
static void change(struct table *table) { table->mutate = own; }

#elif defined(STATELESS)
static char *own(void *data) { return (void)data, NULL; }
static void change(struct table *table) { table->get_state = own; }

#elif defined(LITERAL) /* a state that must not be freed by the host */
static char *own(void *data) { return (void)data, "7"; }
static void own_free(char *text) { (void)text; }
static void change(struct table *table) {
  table->get_state = own;
  table->free_state = own_free;
}

#elif defined(SPARSE) /* only what has to be there */
static void change(struct table *table) {
  *table = (struct table){create, cleanup, mutate, mutate_extended, 0, 0, 0, 0, 0, 0, 0, 0};
}

#elif defined(INCOMPLETE)
static void change(struct table *table) { table->mutate_extended = NULL; }

#elif defined(FORGETFUL) /* goes on with nothing after a restart */
static void *own(char *options, char *state, char *input, size_t length) {
  struct object *object = create(options, NULL, input, length);
  if (state) object->made = TOTAL;
  return object;
}
static void change(struct table *table) { table->create = own; }

#elif defined(RANDOM) /* asks libc, without a seed of its own */
static int own(void *data, char *buffer, size_t size) {
  (void)data, (void)size;
  memset(buffer, 'a' + rand() % 26, 1);
  return 1;
}
static void change(struct table *table) { table->mutate = own; }

#elif defined(TWIN) /* calls its own `mutate` through the linker's table */
int wrapped(void *data, char *buffer, size_t size) { return mutate(data, buffer, size); }
static void change(struct table *table) { table->mutate = wrapped; }

#elif defined(ECHO) /* shows its options */
static int own(void *data, char *buffer, size_t size) {
  struct object *object = data;
  return snprintf(buffer, size, "%s", object->options ? object->options : "none");
}
static void change(struct table *table) { table->mutate = own; }

#elif defined(STATE) /* shows the state that it got, and gives it back */
static char *given;
static void *own(char *options, char *state, char *input, size_t length) {
  free(given);
  given = strdup(state ? state : "{\"random_state0\": -5, \"s\": \"\\u00e4\"}");
  return create(options, NULL, input, length);
}
static char *own_state(void *data) { return (void)data, strdup(given); }
static void change(struct table *table) {
  table->create = own;
  table->get_state = own_state;
}

#elif defined(PARTS) /* three parts, of 1, 2 and 3 bytes */
static void info(void *data, int *count, size_t **sizes) {
  (void)data;
  *count = 3;
  *sizes = malloc(3 * sizeof **sizes);
  for (int i = 0; i < 3; i++) (*sizes)[i] = i + 1;
}
static int none(void *data, char *buffer, size_t size) {
  return (void)data, (void)buffer, (void)size, -1;
}
static int own(void *data, char *buffer, size_t size, uint64_t flags) {
  struct object *object = data;
  unsigned part = flags & 0xffff;
  if (flags != (0x10000 | part) || part > 2 || size != 2 * (part + 1)) return -1;
  if (object->made >= TOTAL) return 0;
  memset(buffer, 'A' + object->made, part + 1);
  object->made += part == 2;
  return part + 1;
}
static void change(struct table *table) {
  table->get_input_info = info;
  table->mutate = none;
  table->mutate_extended = own;
}

#elif defined(FAILS) /* at the third call */
static int own(void *data, char *buffer, size_t size) {
  struct object *object = data;
  return object->made == 2 ? -1 : mutate(data, buffer, size);
}
static void change(struct table *table) { table->mutate = own; }

#elif defined(REFUSES)
static void *own(char *options, char *state, char *input, size_t length) {
  (void)options, (void)state, (void)input, (void)length;
  fprintf(stderr, "REFUSES: no such option\n");
  return NULL;
}
static void change(struct table *table) { table->create = own; }

#elif defined(NOISY) /* as those that load dictionaries */
static void *own(char *options, char *state, char *input, size_t length) {
  printf("NOISY is being created\n");
  fflush(stdout);
  return create(options, state, input, length);
}
static void change(struct table *table) { table->create = own; }

#elif defined(STUCK) /* never returns from its third call */
#include <unistd.h>
static int own(void *data, char *buffer, size_t size) {
  if (((struct object *)data)->made == 2)
    for (;;) pause();
  return mutate(data, buffer, size);
}
static void change(struct table *table) { table->mutate = own; }

#elif defined(CRASHES)
static int own(void *data, char *buffer, size_t size) {
  if (((struct object *)data)->made == 3) *(volatile int *)8 = 0;
  return mutate(data, buffer, size);
}
static void change(struct table *table) { table->mutate = own; }
#endif
