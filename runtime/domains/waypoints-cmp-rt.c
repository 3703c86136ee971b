/* Domain `cmp`: how many bits of two compared values are equal, the best of the run per site. */
#include <stddef.h>
#include <string.h>
#define __AFL_COMPILER 1
#include "waypoints.h"

#define KEYS 65536
FFUZZ_NEW_DOMAIN(__wrapcmp_dsf_map, "cmp", KEYS, FUZZFACTORY_REDUCER_MAX, 0)

/* The first bytes tell enough: without a bound any two long texts with a common beginning would beat every keyword, and
 * strstr costs needle times haystack. */
#define LONGEST 64
#define LONGEST_HAYSTACK 4096

/* Parallel sums of bits: the popcnt instruction is not on every x86-64, and the call that the
 * compiler makes without it is slower. */
static inline uint32_t bits_set(uint64_t v) {
  v -= v >> 1 & 0x5555555555555555u;
  v = (v & 0x3333333333333333u) + (v >> 2 & 0x3333333333333333u);
  v = (v + (v >> 4)) & 0x0f0f0f0f0f0f0f0fu;
  return (uint32_t)(v * 0x0101010101010101u >> 56);
}

/* Of texts and memory: two sides that are equal report nothing. That is seen as an edge, and a program that compares its
 * own data would have a better value with every longer pair. */
#define EQUAL UINT64_MAX

static inline void report(uint32_t key, uint64_t equal_bits) {
  if (equal_bits != EQUAL) __fuzzfactory_dsf_max(__wrapcmp_dsf_map, key, (uint32_t)equal_bits);
}

/* An interpreter comes to the same values of a switch again and again. Where those that are a case stand in their
 * table; and the other values of this run, which have nothing more to report. */
#define KNOWN 1024
static uint16_t places[KNOWN];
static struct other {
  const uint64_t *cases;
  uint64_t value;
  uint32_t run;
} others[KNOWN / 4];
/* Cases that a switch may compare its other values with in a run: some have a thousand, and every letter of a text. */
#define MOST_CASES 2048
static struct effort {
  uint32_t run, cases;
} efforts[KNOWN / 4];
static uint32_t run = 1; /* what they begin with is no run */

static void __ffuzz_cmp_begin(void) { run++; }
FFUZZ_EACH_RUN(__ffuzz_cmp_begin)

static inline int is_case(const uint64_t *cases, uint32_t count, uint32_t at, uint64_t value) {
  return at < count && cases[at] == value;
}

/* One key for each case, in the order of the compiler's list. A value that is a case reports that one, any other how
 * near it is to each. The value arrives zero-extended, so bits above the width are equal and not to be counted. */
void __ffuzz_cmp_switch(uint32_t key, uint64_t value, const uint64_t *cases, uint32_t count, uint32_t width) {
  uint32_t slot = (uint32_t)(value * 0x9e3779b97f4a7c15u >> 32) ^ key;
  struct other *other = &others[slot % (KNOWN / 4)];
  uint32_t at = places[slot % KNOWN];
  if (!is_case(cases, count, at, value)) {
    if (other->cases == cases && other->value == value && other->run == run) return;
    for (at = 0; at < count && cases[at] != value; at++) {}
  }
  if (at < count) {
    if (at <= UINT16_MAX) places[slot % KNOWN] = (uint16_t)at;
    if (__wrapcmp_dsf_map_map[(key + at) % KEYS] < width) report(key + at, width);
    return;
  }
  struct effort *effort = &efforts[key % (KNOWN / 4)];
  if (effort->run != run) *effort = (struct effort){run, 0};
  if (effort->cases >= MOST_CASES) return;
  effort->cases += count;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t equal = width - bits_set(value ^ cases[i]);
    if (equal > __wrapcmp_dsf_map_map[(key + i) % KEYS]) report(key + i, equal);
  }
  *other = (struct other){cases, value, run};
}

static uint64_t equal_in_bytes(const unsigned char *a, const unsigned char *b, size_t n) {
  uint64_t different = 0;
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    uint64_t x, y;
    memcpy(&x, a + i, 8);
    memcpy(&y, b + i, 8);
    different += bits_set(x ^ y);
  }
  for (; i < n; i++) different += bits_set(a[i] ^ b[i]);
  return (uint64_t)n * 8 - different;
}

/* Up to n bytes, ending behind the first NUL of one side; that of both is not counted. */
static uint64_t equal_in_text(const unsigned char *a, const unsigned char *b, size_t n) {
  uint64_t equal = 0, different = 0;
  for (size_t i = 0; i < n && i < LONGEST && (a[i] || b[i]); i++) {
    uint32_t bits = bits_set(a[i] ^ b[i]);
    different += bits;
    equal += 8 - bits;
    if (!a[i] || !b[i]) break;
  }
  return different ? equal : EQUAL;
}

void __ffuzz_cmp_memcmp(uint32_t key, const void *a, const void *b, size_t n) {
  size_t length = n < LONGEST ? n : LONGEST;
  uint64_t equal = equal_in_bytes(a, b, length);
  report(key, equal == length * 8 ? EQUAL : equal);
}

void __ffuzz_cmp_strncmp(uint32_t key, const void *a, const void *b, size_t n) {
  report(key, equal_in_text(a, b, n));
}

void __ffuzz_cmp_strcmp(uint32_t key, const void *a, const void *b) {
  report(key, equal_in_text(a, b, LONGEST));
}

/* The best place of the needle in the haystack. */
void __ffuzz_cmp_strstr(uint32_t key, const void *haystack, const void *needle) {
  size_t hay = strnlen(haystack, LONGEST_HAYSTACK), length = strnlen(needle, LONGEST);
  const unsigned char *text = haystack;
  uint64_t best = hay < length ? equal_in_bytes(text, needle, hay) : 0;
  for (size_t at = 0; at + length <= hay; at++) {
    uint64_t equal = equal_in_bytes(text + at, needle, length);
    if (equal > best) best = equal;
  }
  report(key, length && best == length * 8 && hay >= length ? EQUAL : best);
}
