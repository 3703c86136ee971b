/* Domain maps: the update functions, and the memory behind them.
 *
 * All maps are one array, whose address stays: to meet a fuzzer, and to leave it, is to put other
 * pages at the same place, so code that holds a pointer into a map may keep it. Cost follows what a
 * run touches: the first change of a key in a run is noted in a list, and whoever clears or
 * compares walks only that list. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>

#include "domains.h"
#include "memory.h"

/* Room at the start: what FuzzFactory's own layout holds. More than that moves the array. */
#define FIRST_KEYS 262144u

uint32_t *__fuzzfactory_dsf_map;

HIDDEN struct domain *ffuzz_domains;
HIDDEN uint32_t ffuzz_domain_count;
HIDDEN uint32_t ffuzz_dsf_total;

static uint64_t room; /* keys */
static uint32_t unseen_count; /* stands in for the channel's counter */
static uint32_t *touched_count = &unseen_count;
static uint32_t *touched_list;
static uint32_t touched_capacity;

static void fill(const struct domain *d) {
  for (uint32_t i = 0; i < d->size; i++) __fuzzfactory_dsf_map[d->start + i] = d->initial;
}

/* The array that was is left where it is: a function that runs now may hold its address. */
static void make_room(uint64_t keys) {
  if (keys <= room) return;
  room = keys < FIRST_KEYS ? FIRST_KEYS : keys * 2;
  uint32_t *array = ffuzz_pages(room * sizeof *array);
  if (ffuzz_dsf_total) memcpy(array, __fuzzfactory_dsf_map, (size_t)ffuzz_dsf_total * sizeof *array);
  __fuzzfactory_dsf_map = array;
}

/* Behind all others. The caller counts it, when its map is in place. */
HIDDEN void ffuzz_domain_add(const struct domain *new) {
  size_t used = ffuzz_domain_count * sizeof *ffuzz_domains;
  ffuzz_domains = ffuzz_grow(ffuzz_domains, used, used + sizeof *ffuzz_domains);
  make_room((uint64_t)ffuzz_dsf_total + new->size);
  ffuzz_domains[ffuzz_domain_count] = *new;
  ffuzz_dsf_total += new->size;
  if (new->initial) fill(new);
}

/* Before the value is stored: a run that is killed in between leaves a key in the list that has
 * not changed, and not a changed key that nobody clears. Atomic because two threads which got the
 * same place would lose a key. The values themselves are plain, as in the reference. */
void __ffuzz_touch(uint32_t *place) {
  size_t index = (size_t)(place - __fuzzfactory_dsf_map);
  if (index >= ffuzz_dsf_total) return;
  uint32_t n = __atomic_fetch_add(touched_count, 1, __ATOMIC_RELAXED);
  if (n < touched_capacity) touched_list[n] = (uint32_t)index;
}

/* The rare cases of an inlined sum: its first change of a key, and one that does not fit. */
uint32_t __ffuzz_first_or_full(uint32_t *place, uint32_t old, uint32_t value) {
  if (old == 0 && value != 0) __ffuzz_touch(place);
  return value > UINT32_MAX - old ? UINT32_MAX : old + value;
}

#define UPDATE(NAME, RESULT)                                                      \
  void __fuzzfactory_dsf_##NAME(dsf_t id, uint32_t key, uint32_t value) {         \
    if ((uint32_t)id >= ffuzz_domain_count) return;                               \
    const struct domain *d = &ffuzz_domains[id];                                  \
    uint32_t index = d->start + (key < d->size ? key : key % d->size);            \
    uint32_t *place = &__fuzzfactory_dsf_map[index];                              \
    uint32_t old = *place;                                                        \
    uint32_t now = RESULT;                                                        \
    if (now == old || d->discarded) return;                                       \
    if (old == d->initial) __ffuzz_touch(place);                                  \
    *place = now;                                                                 \
  }                                                                               \
  void __fuzzfactory_dsfp_##NAME(dsf_t *id, uint32_t key, uint32_t value) {       \
    __fuzzfactory_dsf_##NAME(*id, key, value);                                    \
  }

UPDATE(max, old > value ? old : value)
UPDATE(min, old < value ? old : value)
UPDATE(bitwise_or, old | value)
UPDATE(set, value)
UPDATE(increment, old + value)
/* For domains that count bytes: a sum that does not fit is "very much", not a small rest. */
UPDATE(add_saturating, value > UINT32_MAX - old ? UINT32_MAX : old + value)

static void preset(void) {
  for (uint32_t i = 0; i < ffuzz_domain_count; i++) fill(&ffuzz_domains[i]);
}

HIDDEN size_t ffuzz_domains_bytes(void) { return ffuzz_page_up((uint64_t)ffuzz_dsf_total * 4); }

/* The caller has put shared pages at the place of the array. */
HIDDEN void ffuzz_domains_attach(uint32_t *count, uint32_t *list, uint32_t capacity) {
  preset();
  touched_count = count;
  touched_list = list;
  touched_capacity = capacity;
}

/* Calls `visit` for the keys of one domain that may have changed; 0 if all of them may. */
static int for_touched(const struct domain *d, void (*visit)(const struct domain *, uint32_t)) {
  uint32_t count = *touched_count;
  if (count > touched_capacity) return 0;
  for (uint32_t t = 0; t < count; t++)
    if (touched_list[t] - d->start < d->size) visit(d, touched_list[t]);
  return 1;
}

static void put_back(const struct domain *d, uint32_t index) { __fuzzfactory_dsf_map[index] = d->initial; }

HIDDEN void ffuzz_domain_clear(dsf_t id) {
  const struct domain *d = &ffuzz_domains[id];
  if (!for_touched(d, put_back)) fill(d);
}

/* Puts back the keys that were touched so far. */
HIDDEN void ffuzz_domains_reset(void) {
  for (uint32_t i = 0; i < ffuzz_domain_count; i++) ffuzz_domain_clear((dsf_t)i);
  *touched_count = 0;
}

static int beats(const struct domain *d, uint32_t value, uint32_t bar) {
  switch (d->reducer) {
    case 0: return value > bar;
    case 1: return value < bar;
    case 2: return value && (UINT32_C(1) << (31 - __builtin_clz(value)) & ~bar) != 0;
    case 3: return (value & ~bar) != 0;
    default: return (~value & bar) != 0;
  }
}

/* Does a key of this run beat its bar? */
HIDDEN int ffuzz_keys_are_new(const uint32_t *bars) {
  uint32_t count = *touched_count;
  if (count <= touched_capacity) {
    for (uint32_t t = 0; t < count; t++) {
      uint32_t key = touched_list[t], i = 0;
      while (key - ffuzz_domains[i].start >= ffuzz_domains[i].size) i++;
      if (beats(&ffuzz_domains[i], __fuzzfactory_dsf_map[key], bars[key])) return 1;
    }
    return 0;
  }
  for (uint32_t i = 0; i < ffuzz_domain_count; i++) {
    const struct domain *d = &ffuzz_domains[i];
    for (uint32_t key = d->start; key < d->start + d->size; key++)
      if (beats(d, __fuzzfactory_dsf_map[key], bars[key])) return 1;
  }
  return 0;
}

HIDDEN uint32_t ffuzz_keys_count(void) { return *touched_count <= touched_capacity ? *touched_count : UINT32_MAX; }

HIDDEN void ffuzz_keys_save(struct saved_key *to) {
  for (uint32_t t = 0; t < *touched_count; t++)
    to[t] = (struct saved_key){touched_list[t], __fuzzfactory_dsf_map[touched_list[t]]};
}

HIDDEN void ffuzz_keys_load(const struct saved_key *from, uint32_t count) {
  for (uint32_t t = 0; t < count; t++) {
    touched_list[t] = from[t].key;
    __fuzzfactory_dsf_map[from[t].key] = from[t].value;
  }
  *touched_count = count;
}

/* From here on updates go to private pages. Should this fail they stay shared: values too many. */
HIDDEN void ffuzz_domains_detach(void) {
  touched_capacity = 0;
  touched_count = &unseen_count;
  if (!ffuzz_dsf_total) return;
  mmap(__fuzzfactory_dsf_map, ffuzz_domains_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
       -1, 0);
}
