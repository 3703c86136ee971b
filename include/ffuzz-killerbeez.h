/*
 * What a mutator module for Killerbeez has: a library lib<NAME>_mutator.so with a function init that fills a
 * table. No other header and no library of Killerbeez is needed to build one; it runs in ffuzz and, with the
 * same binary interface, in Killerbeez's own fuzzer. docs/killerbeez.md has an example.
 *
 *   cc -shared -fPIC -I include -o libmine_mutator.so mine.c
 *   ffuzz -i seeds -o out --mutator mine --mutator-dir . -- ./target
 *
 * Options and states are texts; by convention they are JSON. The host does not interpret them. What the host
 * passes (options, state, input) is only valid during the call: copy what is needed later.
 */
#ifndef FFUZZ_KILLERBEEZ_H
#define FFUZZ_KILLERBEEZ_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Flags of mutate_extended. */
#define MUTATE_MULTIPLE_INPUTS_MASK 0xffff /* the number of the part, from 0 on, if the next one is set */
#define MUTATE_MULTIPLE_INPUTS 0x10000     /* change one part of an input of several parts */
#define MUTATE_THREAD_SAFE 0x20000         /* other threads may call the module at the same time */

typedef struct mutator {
  /*
   * Makes an object for one input. options: NULL or the user's text. state: NULL, or what get_state has
   * returned for the same input and options. NULL on failure: bad options, a bad state, an empty input.
   */
  void *(*create)(char *options, char *state, char *input, size_t input_length);

  /* The last call for an object. */
  void (*cleanup)(void *object);

  /*
   * Writes the next changed input into the buffer, which is never smaller than the input, and returns its
   * length; 0: there are no more; -1: an error. mutate_extended has flags.
   */
  int (*mutate)(void *object, char *buffer, size_t buffer_length);
  int (*mutate_extended)(void *object, char *buffer, size_t buffer_length, uint64_t flags);

  /*
   * A text from which create or set_state can continue, or NULL. The host gives it back to free_state, and
   * never frees it itself. set_state returns 0, or another number on failure.
   */
  char *(*get_state)(void *object);
  void (*free_state)(char *state);
  int (*set_state)(void *object, char *state);

  /* Inputs made so far, and all that there can be; -1: unknown or without end. */
  int (*get_current_iteration)(void *object);
  int (*get_total_iteration_count)(void *object);

  /* Number of parts of the input, and an array of their lengths from malloc, which the host frees. */
  void (*get_input_info)(void *object, int *num_inputs, size_t **input_sizes);

  /* Begins anew with another input. 0, or -1 on failure. */
  int (*set_input)(void *object, char *new_input, size_t input_length);

  /* A text about the module and its options, from malloc, which the host frees. 0, or -1 on failure. */
  int (*help)(char **help_str);
} mutator_t;

/*
 * The only function that the host looks up by name. create, cleanup, mutate and mutate_extended are
 * required; ffuzz does without the others, Killerbeez calls them all.
 */
void init(mutator_t *m);

#ifdef __cplusplus
}
#endif

#endif
