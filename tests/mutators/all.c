// Every hook, each noted in the file MUTATOR_LOG, a line a call. MUTATOR_TAG tells two apart.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../include/ffuzz-mutator.h"

#ifndef TAG
#define TAG ""
#endif

static FILE *calls;
static uint8_t out[1 << 20];
static int trimmed;

static void note(const char *call) { fprintf(calls, TAG "%s\n", call), fflush(calls); }

static void note_file(const char *call, const uint8_t *name, const uint8_t *from) {
  const char *last = strrchr((const char *)name, '/');
  fprintf(calls, TAG "%s %.9s %s\n", call, last ? last + 1 : "?", from ? "seed" : "none");
  fflush(calls);
}

static size_t echo(const uint8_t *buf, size_t size, uint8_t **result) {
  memcpy(out, buf, size);
  *result = out;
  return size;
}

void *afl_custom_init(void *afl, unsigned int seed) {
  (void)seed;
  calls = fopen(getenv("MUTATOR_LOG"), "a");
  // The opaque pointer is to readable memory, all zeros (afl-fuzz's own is not).
  for (size_t i = 0; getenv("MUTATOR_PEEKS") && i < 1 << 16; i++)
    if (((const uint8_t *)afl)[i]) return NULL;
  note("init");
  const char *const info[] = {"PROGRAM", "PROGRAM_ARGV", "PROGRAM_INPUT", "OUT"};
  for (size_t i = 0; getenv("MUTATOR_PEEKS") && i < 4; i++) {
    char name[64];
    snprintf(name, sizeof name, "AFL_CUSTOM_INFO_%s", info[i]);
    const char *value = getenv(name);
    fprintf(calls, "%s=%s\n", info[i], value ? value : "unset");
  }
  return calls;
}

void afl_custom_deinit(void *data) { (void)data, note("deinit"); }

uint32_t afl_custom_fuzz_count(void *data, const uint8_t *buf, size_t size) {
  (void)data, (void)buf, (void)size;
  note("fuzz_count");
  return 4;
}

size_t afl_custom_fuzz(void *data, uint8_t *buf, size_t size, uint8_t **result, uint8_t *add,
                       size_t add_size, size_t max) {
  (void)data, (void)add, (void)add_size;
  note("fuzz");
  if (size > max) abort();
  size_t made = echo(buf, size, result);
  // A find for any target that looks at the first byte.
  static uint8_t next = 'A';
  if (made) out[0] = next++;
  return made;
}

const char *afl_custom_describe(void *data, size_t max) {
  (void)data, (void)max;
  note("describe");
  return "letter,of:all";
}

size_t afl_custom_post_process(void *data, uint8_t *buf, size_t size, uint8_t **result) {
  (void)data;
  note("post_process");
  *result = buf;
  return size;
}

int32_t afl_custom_init_trim(void *data, uint8_t *buf, size_t size) {
  (void)data;
  uint8_t *ignored;
  note("init_trim");
  echo(buf, size, &ignored);
  trimmed = 0;
  return 2;
}

size_t afl_custom_trim(void *data, uint8_t **result) {
  (void)data;
  note("trim");
  out[0] = 'Z' - (uint8_t)trimmed;
  *result = out;
  return 4;
}

int32_t afl_custom_post_trim(void *data, uint8_t success) {
  (void)data, (void)success;
  note("post_trim");
  return ++trimmed;
}

size_t afl_custom_havoc_mutation(void *data, uint8_t *buf, size_t size, uint8_t **result,
                                 size_t max) {
  (void)data, (void)max;
  note("havoc_mutation");
  *result = buf;
  return size;
}

uint8_t afl_custom_havoc_mutation_probability(void *data) {
  (void)data;
  note("havoc_mutation_probability");
  return 100;
}

uint8_t afl_custom_queue_get(void *data, const uint8_t *name) {
  (void)data;
  note_file("queue_get", name, name);
  return 1;
}

uint8_t afl_custom_queue_new_entry(void *data, const uint8_t *name, const uint8_t *from) {
  (void)data;
  note_file("queue_new_entry", name, from);
  return 0;
}

#ifdef WITH_POST_RUN
void afl_custom_post_run(void *data) { (void)data, note("post_run"); }
#endif

#ifdef WITH_SEND
void afl_custom_fuzz_send(void *data, const uint8_t *buf, size_t size) {
  (void)data;
  note("fuzz_send");
  FILE *file = fopen(getenv("SEND_TO"), "w");
  if (file) fwrite(buf, 1, size, file), fclose(file);
}
#endif

#ifdef WITH_INTROSPECTION
const char *afl_custom_introspection(void *data) { (void)data, note("introspection"); return "all\nis \"well\""; }
#endif
