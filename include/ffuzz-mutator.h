/*
 * What a mutator library can have: AFL++'s interface in C.
 *
 * A library has afl_custom_init and whatever else it wants of the functions below; the others are
 * not called. From C++ the prototypes make sure that names stay as they are; in Rust the same
 * functions are `#[no_mangle] extern "C"`. docs/mutators.md has examples and the order of calls.
 *
 *   cc -shared -fPIC -I include -o mine.so mine.c
 *   AFL_CUSTOM_MUTATOR_LIBRARY=./mine.so ffuzz -i seeds -o out -- ./target
 *
 * Buffers: what *out_buf points to belongs to the library, which keeps it as it is until its next
 * call; it is copied at once and never freed. buf is a copy, which may be changed and returned
 * (*out_buf = buf), but not made longer. A returned 0 means: no input this time. Inputs longer
 * than allowed are cut.
 */
#ifndef FFUZZ_MUTATOR_H
#define FFUZZ_MUTATOR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The first call; needed. The result, which must not be NULL, is `data` of all other calls. `afl`
 * is not NULL and means nothing: it points to memory that reads as zeros. `seed` is for the
 * library's own random numbers: the same with the same -s.
 */
void *afl_custom_init(void *afl, unsigned int seed);

/* The last call. */
void afl_custom_deinit(void *data);

/* ---- Making inputs from a seed (the stage before havoc) ---- */

/*
 * Makes an input of at most max_size bytes from buf. add_buf is another seed to take parts from,
 * or NULL.
 */
size_t afl_custom_fuzz(void *data, uint8_t *buf, size_t buf_size, uint8_t **out_buf,
                       uint8_t *add_buf, size_t add_buf_size, size_t max_size);

/* How often afl_custom_fuzz is called for a seed; without it the fuzzer decides. */
uint32_t afl_custom_fuzz_count(void *data, const uint8_t *buf, size_t buf_size);

/* Never called: a library that has it gets no add_buf. */
void afl_custom_splice_optout(void *data);

/* What the last afl_custom_fuzz did, for the name of the file. */
const char *afl_custom_describe(void *data, size_t max_description_len);

/* ---- A step among havoc's ---- */

/* Changes buf in place, or makes another input of at most max_size bytes. */
size_t afl_custom_havoc_mutation(void *data, uint8_t *buf, size_t buf_size, uint8_t **out_buf,
                                 size_t max_size);

/* Percent of havoc's steps that begin with the function above; 6 without it. */
uint8_t afl_custom_havoc_mutation_probability(void *data);

/* ---- Around a run ---- */

/* What the target gets in place of buf: checksums, lengths, compression. 0: it is not run. */
size_t afl_custom_post_process(void *data, uint8_t *buf, size_t buf_size, uint8_t **out_buf);

/* Hands the input to the target; then the fuzzer does not. */
void afl_custom_fuzz_send(void *data, const uint8_t *buf, size_t buf_size);

/* After each run. */
void afl_custom_post_run(void *data);

/* ---- Trimming: all three or none ---- */

/* Begins with a seed; returns the number of steps, or a guess. */
int32_t afl_custom_init_trim(void *data, uint8_t *buf, size_t buf_size);

/* The next proposal. */
size_t afl_custom_trim(void *data, uint8_t **out_buf);

/*
 * Whether the last proposal behaves as the seed did, and takes its place. Returns the number of the
 * next step; trimming ends when it reaches what afl_custom_init_trim returned.
 */
int32_t afl_custom_post_trim(void *data, uint8_t success);

/* ---- The queue ---- */

/* Before a seed's turn. 0: not now. */
uint8_t afl_custom_queue_get(void *data, const uint8_t *filename);

/*
 * A file was added; filename_orig is that of the seed it came from, NULL for a starting seed.
 * Anything but 0: the library has changed the file.
 */
uint8_t afl_custom_queue_new_entry(void *data, const uint8_t *filename_new,
                                   const uint8_t *filename_orig);

/* ---- Statistics ---- */

/* A line for fuzzer_stats at the end. */
const char *afl_custom_introspection(void *data);

#ifdef __cplusplus
}
#endif

#endif
