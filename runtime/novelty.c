/* Does a run show edges or hit counts that are new? One pass over exactly the counters that the program
 * has, by the widest vectors of the processor; blocks without a hit cost one compare.
 *
 * Hit counts 1, 2, 3, 4-7, 8-15, 16-31, 32-127, 128-255 are one bit each (AFL). A virgin map holds the
 * bits that were not seen yet. */
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "novelty.h"
#include "memory.h"

#define BLOCK 64u

static uint8_t *map;
static const uint8_t *virgin;
static uint32_t blocks;
/* Blocks with a hit, found by the last pass. */
static uint32_t *hit;
static uint32_t hits;

static inline uint8_t class_of(uint8_t n) {
  static const uint8_t low[16] = {0, 1, 2, 4, 8, 8, 8, 8, 16, 16, 16, 16, 16, 16, 16, 16};
  static const uint8_t high[16] = {0, 32, 64, 64, 64, 64, 64, 64, 128, 128, 128, 128, 128, 128, 128, 128};
  return n < 16 ? low[n] : high[n >> 4];
}

static int classes_are_new_portable(const uint8_t *counts, const uint8_t *unseen) {
  uint8_t seen = 0;
  for (uint32_t i = 0; i < BLOCK; i++) seen |= class_of(counts[i]) & unseen[i];
  return seen != 0;
}

static int pass_portable(void) {
  for (uint32_t b = 0; b < blocks; b++) {
    uint64_t words[BLOCK / 8], any = 0;
    memcpy(words, map + b * (size_t)BLOCK, BLOCK);
    for (uint32_t i = 0; i < BLOCK / 8; i++) any |= words[i];
    if (!any) continue;
    hit[hits++] = b;
    if (classes_are_new_portable(map + b * (size_t)BLOCK, virgin + b * (size_t)BLOCK)) return 1;
  }
  return 0;
}

#if defined(__x86_64__)
#define LOW_CLASSES 0, 1, 2, 4, 8, 8, 8, 8, 16, 16, 16, 16, 16, 16, 16, 16
#define HIGH_CLASSES 0, 32, 64, 64, 64, 64, 64, 64, -128, -128, -128, -128, -128, -128, -128, -128

/* The classes of 32 counters by two look-ups in tables of 16: a count below 16 by its low half, the
 * others by their high half. */
__attribute__((target("avx2"))) static inline __m256i classify_32(__m256i counts) {
  const __m256i low = _mm256_setr_epi8(LOW_CLASSES, LOW_CLASSES);
  const __m256i high = _mm256_setr_epi8(HIGH_CLASSES, HIGH_CLASSES);
  const __m256i half = _mm256_set1_epi8(15);
  __m256i upper = _mm256_and_si256(_mm256_srli_epi16(counts, 4), half);
  __m256i small = _mm256_cmpeq_epi8(upper, _mm256_setzero_si256());
  __m256i by_low = _mm256_shuffle_epi8(low, _mm256_and_si256(counts, half));
  return _mm256_or_si256(_mm256_shuffle_epi8(high, upper), _mm256_and_si256(by_low, small));
}

__attribute__((target("avx2"))) static int pass_avx2(void) {
  for (uint32_t b = 0; b < blocks; b++) {
    const __m256i *counts = (const void *)(map + b * (size_t)BLOCK);
    const __m256i *unseen = (const void *)(virgin + b * (size_t)BLOCK);
    __m256i first = _mm256_load_si256(counts), second = _mm256_load_si256(counts + 1);
    __m256i any = _mm256_or_si256(first, second);
    if (_mm256_testz_si256(any, any)) continue;
    hit[hits++] = b;
    if (!_mm256_testz_si256(classify_32(first), _mm256_load_si256(unseen)) ||
        !_mm256_testz_si256(classify_32(second), _mm256_load_si256(unseen + 1)))
      return 1;
  }
  return 0;
}

__attribute__((target("avx512f,avx512bw"))) static int pass_avx512(void) {
  const __m512i low = _mm512_broadcast_i32x4(_mm_setr_epi8(LOW_CLASSES));
  const __m512i high = _mm512_broadcast_i32x4(_mm_setr_epi8(HIGH_CLASSES));
  const __m512i half = _mm512_set1_epi8(15);
  for (uint32_t b = 0; b < blocks; b++) {
    __m512i counts = _mm512_load_si512(map + b * (size_t)BLOCK);
    if (!_mm512_test_epi64_mask(counts, counts)) continue;
    hit[hits++] = b;
    __m512i upper = _mm512_and_si512(_mm512_srli_epi16(counts, 4), half);
    __mmask64 small = _mm512_testn_epi8_mask(upper, upper);
    __m512i by_low = _mm512_maskz_shuffle_epi8(small, low, _mm512_and_si512(counts, half));
    __m512i classes = _mm512_or_si512(_mm512_shuffle_epi8(high, upper), by_low);
    if (_mm512_test_epi8_mask(classes, _mm512_load_si512(virgin + b * (size_t)BLOCK))) return 1;
  }
  return 0;
}
#endif

static int (*pass)(void) = pass_portable;

HIDDEN void ffuzz_novelty_start(uint8_t *counters, const uint8_t *unseen, uint64_t size) {
  map = counters;
  virgin = unseen;
  blocks = (uint32_t)((size + BLOCK - 1) / BLOCK);
  hit = ffuzz_pages(blocks * sizeof *hit + 1);
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512bw"))
    pass = pass_avx512;
  else if (__builtin_cpu_supports("avx2"))
    pass = pass_avx2;
#endif
}

HIDDEN int ffuzz_edges_are_new(void) {
  hits = 0;
  return pass();
}

/* SplitMix64's finalizer (Steele, Lea, Flood, OOPSLA 2014). */
static uint64_t mix(uint64_t v) {
  v += 0x9e3779b97f4a7c15u;
  v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9u;
  v = (v ^ v >> 27) * 0x94d049bb133111ebu;
  return v ^ v >> 31;
}

static uint64_t hit_bytes(uint64_t v) {
  const uint64_t low = 0x7f7f7f7f7f7f7f7fu;
  return (((v & low) + low) | v) >> 7 & 0x0101010101010101u;
}

/* The fuzzer computes the same for runs that it sees (engine/coverage, map_hash). */
HIDDEN uint64_t ffuzz_edges_hash(int counts) {
  uint64_t hash = 0;
  for (uint32_t h = 0; h < hits; h++) {
    uint64_t words[BLOCK / 8];
    memcpy(words, map + hit[h] * (size_t)BLOCK, BLOCK);
    for (uint32_t i = 0; i < BLOCK / 8; i++) {
      uint64_t place = hit[h] * (uint64_t)(BLOCK / 8) + i, reduced = 0;
      if (!words[i]) continue;
      if (counts)
        for (uint32_t b = 0; b < 64; b += 8) reduced |= (uint64_t)class_of((uint8_t)(words[i] >> b)) << b;
      else
        reduced = hit_bytes(words[i]);
      hash = mix(hash ^ reduced ^ (place << 40 | place >> 24));
    }
  }
  return hash;
}

/* To be called when nothing was new: then the pass has seen every block. */
HIDDEN void ffuzz_edges_forget(void) {
  for (uint32_t i = 0; i < hits; i++) memset(map + hit[i] * (size_t)BLOCK, 0, BLOCK);
}

HIDDEN const uint8_t *ffuzz_edges_unseen(void) { return virgin; }

static int is_hit(uint32_t block) {
  const uint8_t *counts = map + block * (size_t)BLOCK;
  for (uint32_t i = 0; i < BLOCK; i++)
    if (counts[i]) return 1;
  return 0;
}

HIDDEN uint32_t ffuzz_edges_count(void) {
  uint32_t count = 0;
  for (uint32_t b = 0; b < blocks; b++) count += (uint32_t)is_hit(b);
  return count;
}

HIDDEN void ffuzz_edges_save(struct saved_block *to) {
  for (uint32_t b = 0; b < blocks; b++) {
    if (!is_hit(b)) continue;
    to->number = b;
    memcpy(to++->counts, map + b * (size_t)BLOCK, BLOCK);
  }
}

HIDDEN void ffuzz_edges_load(const struct saved_block *from, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) memcpy(map + from[i].number * (size_t)BLOCK, from[i].counts, BLOCK);
}
