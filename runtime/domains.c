/* Domain maps: registration by name and the four update functions.
 *
 * Until a fuzzer is met the values live in private pages which grow with each registration, so
 * updates are legal at any time. Cost follows what a run touches: the first change of a key in a
 * run is noted in a list, and whoever clears or compares walks only that list. */
#define _GNU_SOURCE
#include <string.h>
#include <unistd.h>

#include "ffuzz-rt.h"

typedef int dsf_t;

uint32_t *__fuzzfactory_dsf_map;

HIDDEN struct domain *ffuzz_domains;
HIDDEN uint32_t ffuzz_domain_count;
HIDDEN uint32_t ffuzz_dsf_total;

static uint32_t unseen_count; /* stands in for the channel's counter */
HIDDEN uint32_t *ffuzz_touched_count = &unseen_count;
HIDDEN uint32_t *ffuzz_touched_list;
HIDDEN uint32_t ffuzz_touched_capacity;

static void append(char *line, size_t room, const char *text) {
  size_t used = strlen(line);
  strncat(line, text, room - used - 1);
}

static void append_number(char *line, size_t room, uint32_t n) {
  char digits[12];
  char *at = digits + sizeof digits - 1;
  *at = 0;
  do *--at = (char)('0' + n % 10);
  while (n /= 10);
  append(line, room, at);
}

static void refuse_size(uint32_t size) {
  char line[80] = "[-] ERROR: Invalid domain-specific map size: ";
  append_number(line, sizeof line, size);
  append(line, sizeof line, "\n");
  ffuzz_say(line);
  _exit(1);
}

static void refuse_conflict(const char *name) {
  char line[160] = "[-] ERROR: Domain \"";
  append(line, sizeof line, name);
  append(line, sizeof line, "\" is registered twice with different size, reducer or initial value.\n");
  ffuzz_say(line);
  _exit(1);
}

static dsf_t find(const char *name, uint32_t size, uint32_t reducer, uint32_t initial) {
  for (uint32_t i = 0; i < ffuzz_domain_count; i++) {
    const struct domain *d = &ffuzz_domains[i];
    if (strncmp(d->name, name, sizeof d->name - 1)) continue;
    if (d->size != size || d->reducer != reducer || d->initial != initial) refuse_conflict(name);
    return (dsf_t)i;
  }
  return -1;
}

static void fill(uint32_t *map, const struct domain *d) {
  for (uint32_t i = 0; i < d->size; i++) map[d->start + i] = d->initial;
}

/* Name, size, reducer and initial value are the domain's record. A second registration of the same
 * record (the same domain in a shared library) is the same domain. Once the fuzzer has been told
 * the layout a new domain has no place any more: it gets an id that every update ignores. */
dsf_t __ffuzz_new_domain(const char *name, uint32_t size, uint32_t reducer, uint32_t initial) {
  if (size == 0 || size > UINT32_MAX - ffuzz_dsf_total) refuse_size(size);
  dsf_t known = name ? find(name, size, reducer, initial) : -1;
  if (known >= 0 || ffuzz_frozen) return known;
  size_t used = ffuzz_domain_count * sizeof *ffuzz_domains;
  ffuzz_domains = ffuzz_grow(ffuzz_domains, used, used + sizeof *ffuzz_domains);
  struct domain *d = &ffuzz_domains[ffuzz_domain_count];
  *d = (struct domain){.start = ffuzz_dsf_total, .size = size, .reducer = reducer, .initial = initial};
  if (name) {
    strncpy(d->name, name, sizeof d->name - 1);
  } else {
    append(d->name, sizeof d->name, "map");
    append_number(d->name, sizeof d->name, ffuzz_domain_count);
  }
  __fuzzfactory_dsf_map = ffuzz_grow(__fuzzfactory_dsf_map, (size_t)d->start * 4, ((size_t)d->start + size) * 4);
  ffuzz_dsf_total += size;
  if (initial) fill(__fuzzfactory_dsf_map, d);
  return (dsf_t)ffuzz_domain_count++;
}

dsf_t __fuzzfactory_new_domain(uint32_t size, uint32_t reducer, uint32_t initial) {
  return __ffuzz_new_domain(NULL, size, reducer, initial);
}

/* Atomic because two threads which got the same place would lose a key, and a key that is not in
 * the list is never cleared. The values themselves are plain, as in the reference. */
__attribute__((noinline)) static void touch(uint32_t index) {
  uint32_t n = __atomic_fetch_add(ffuzz_touched_count, 1, __ATOMIC_RELAXED);
  if (n < ffuzz_touched_capacity) ffuzz_touched_list[n] = index;
}

#define UPDATE(NAME, RESULT)                                                      \
  void __fuzzfactory_dsf_##NAME(dsf_t id, uint32_t key, uint32_t value) {         \
    if ((uint32_t)id >= ffuzz_domain_count) return;                               \
    const struct domain *d = &ffuzz_domains[id];                                  \
    uint32_t index = d->start + (key < d->size ? key : key % d->size);            \
    uint32_t *place = &__fuzzfactory_dsf_map[index];                              \
    uint32_t old = *place;                                                        \
    uint32_t now = RESULT;                                                        \
    if (now == old) return;                                                       \
    *place = now;                                                                 \
    if (old == d->initial) touch(index);                                          \
  }                                                                               \
  void __fuzzfactory_dsfp_##NAME(dsf_t *id, uint32_t key, uint32_t value) {       \
    __fuzzfactory_dsf_##NAME(*id, key, value);                                    \
  }

UPDATE(max, old > value ? old : value)
UPDATE(bitwise_or, old | value)
UPDATE(set, value)
UPDATE(increment, old + value)
/* For domains that count bytes: a sum that does not fit is "very much", not a small rest. */
UPDATE(add_saturating, value > UINT32_MAX - old ? UINT32_MAX : old + value)

HIDDEN void ffuzz_domains_preset(uint32_t *map) {
  for (uint32_t i = 0; i < ffuzz_domain_count; i++) fill(map, &ffuzz_domains[i]);
}

HIDDEN void ffuzz_domains_attach(uint32_t *map, uint32_t *count, uint32_t *list, uint32_t capacity) {
  ffuzz_domains_preset(map);
  __fuzzfactory_dsf_map = map;
  ffuzz_touched_count = count;
  ffuzz_touched_list = list;
  ffuzz_touched_capacity = capacity;
}

/* Puts back the keys that were touched so far. */
HIDDEN void ffuzz_domains_reset(void) {
  uint32_t count = *ffuzz_touched_count;
  *ffuzz_touched_count = 0;
  if (count > ffuzz_touched_capacity) {
    ffuzz_domains_preset(__fuzzfactory_dsf_map);
    return;
  }
  for (uint32_t i = 0; i < ffuzz_domain_count; i++) {
    const struct domain *d = &ffuzz_domains[i];
    for (uint32_t t = 0; t < count; t++)
      if (ffuzz_touched_list[t] - d->start < d->size) __fuzzfactory_dsf_map[ffuzz_touched_list[t]] = d->initial;
  }
}

/* From here on updates go to private pages. */
HIDDEN void ffuzz_domains_detach(void) {
  ffuzz_touched_capacity = 0;
  ffuzz_touched_count = &unseen_count;
  if (ffuzz_dsf_total) __fuzzfactory_dsf_map = ffuzz_pages((size_t)ffuzz_dsf_total * 4);
}
