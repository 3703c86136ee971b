/* Domain `cmp`: how many bits of two compared values are equal, the best of the run per site. */
#include <stddef.h>
#include <string.h>
#define __AFL_COMPILER 1
#include "waypoints.h"

#define KEYS 65536
FFUZZ_NEW_DOMAIN(__wrapcmp_dsf_map, "cmp", KEYS, FUZZFACTORY_REDUCER_MAX, 0)

/* The cost of strstr is needle times haystack; the first bytes tell enough. */
#define LONGEST_NEEDLE 64
#define LONGEST_HAYSTACK 4096

/* Parallel sums of bits: the popcnt instruction is not on every x86-64, and the call that the
 * compiler makes without it is slower. */
static inline uint32_t bits_set(uint64_t v) {
  v -= v >> 1 & 0x5555555555555555u;
  v = (v & 0x3333333333333333u) + (v >> 2 & 0x3333333333333333u);
  v = (v + (v >> 4)) & 0x0f0f0f0f0f0f0f0fu;
  return (uint32_t)(v * 0x0101010101010101u >> 56);
}

static inline void report(uint32_t key, uint64_t equal_bits) {
  __fuzzfactory_dsf_max(__wrapcmp_dsf_map, key, equal_bits > UINT32_MAX ? UINT32_MAX : (uint32_t)equal_bits);
}

/* Values that a switch has had in this run: they have nothing more to report. An interpreter comes to the
 * same ones again and again. */
#define SEEN 256
static struct {
  const uint64_t *cases;
  uint64_t value;
  uint32_t run;
} seen[SEEN];
static uint32_t run = 1; /* their default is no run */

static void __ffuzz_cmp_begin(void) { run++; }
FFUZZ_EACH_RUN(__ffuzz_cmp_begin)

/* One key for each case, in the order of the compiler's list. The value arrives zero-extended, so
 * bits above the width are equal and not to be counted. */
void __ffuzz_cmp_switch(uint32_t key, uint64_t value, const uint64_t *cases, uint32_t count, uint32_t width) {
  uint32_t slot = ((uint32_t)(value * 0x9e3779b97f4a7c15u >> 32) ^ key) % SEEN;
  if (seen[slot].cases == cases && seen[slot].value == value && seen[slot].run == run) return;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t equal = width - bits_set(value ^ cases[i]);
    if (equal > __wrapcmp_dsf_map_map[(key + i) % KEYS]) report(key + i, equal);
  }
  seen[slot].cases = cases;
  seen[slot].value = value;
  seen[slot].run = run;
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

/* Up to n bytes, ending behind the first NUL of either side. */
static uint64_t equal_in_text(const unsigned char *a, const unsigned char *b, size_t n) {
  uint64_t equal = 0;
  for (size_t i = 0; i < n; i++) {
    equal += 8 - bits_set(a[i] ^ b[i]);
    if (!a[i] || !b[i]) break;
  }
  return equal;
}

void __ffuzz_cmp_memcmp(uint32_t key, const void *a, const void *b, size_t n) {
  report(key, equal_in_bytes(a, b, n));
}

void __ffuzz_cmp_strncmp(uint32_t key, const void *a, const void *b, size_t n) {
  report(key, equal_in_text(a, b, n));
}

/* The closing NUL of both is not counted: a full match of L characters is 8L. */
void __ffuzz_cmp_strcmp(uint32_t key, const void *a, const void *b) {
  size_t length_a = strlen(a), length_b = strlen(b);
  report(key, equal_in_text(a, b, length_a > length_b ? length_a : length_b));
}

/* The best place of the needle in the haystack. */
void __ffuzz_cmp_strstr(uint32_t key, const void *haystack, const void *needle) {
  size_t hay = strnlen(haystack, LONGEST_HAYSTACK), length = strnlen(needle, LONGEST_NEEDLE);
  const unsigned char *text = haystack;
  uint64_t best = hay < length ? equal_in_bytes(text, needle, hay) : 0;
  for (size_t at = 0; at + length <= hay; at++) {
    uint64_t equal = equal_in_bytes(text + at, needle, length);
    if (equal > best) best = equal;
  }
  report(key, best);
}
