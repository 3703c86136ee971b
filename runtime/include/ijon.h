/* IJON's annotations, on three feedback maps. Sources annotated for IJON compile unchanged; built
 * by a compiler other than ffuzz-cc the annotations are nothing. (Aschermann, Schumilo, Abbasi,
 * Holz: IJON: Exploring Deep State Spaces via Fuzzing, IEEE S&P 2020.)
 *
 *   IJON_SET(x), IJON_INC(x)    a value x was seen here; was seen so often here
 *   IJON_MAX(x), IJON_MIN(x)    get the largest, the smallest x; with a first argument that names
 *                               the slot, else each place is a slot of its own
 *   IJON_MAX_AT(slot, x), IJON_MIN_AT(slot, x)
 *   IJON_STACK_MAX(x), IJON_STACK_MIN(x)
 *                               each caller of the function with the annotation is a slot of its own
 *   IJON_DIST(x, y)             get x and y closer to each other
 *   IJON_CMP(x, y)              number of bits in which x and y differ
 *   IJON_STRDIST(x, y)          length of the common beginning of two strings
 *   IJON_BITS(x)                position of the highest bit of x
 *   IJON_STATE(x)               the state of the program changes by x: what is seen from here on
 *                               is seen in another state (and every new state is worth keeping)
 *   IJON_CTX(x)                 x, evaluated in a state of its own
 *
 * The state tells apart what SET and INC see; it does not change the coverage map. Values above
 * 2^32 - 1 count as 2^32 - 1. */
#ifndef FFUZZ_IJON_H
#define FFUZZ_IJON_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "waypoints.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __clang__
#define FFUZZ_IJON_HELPER __attribute__((unused, no_sanitize("coverage"))) static inline
#else
#define FFUZZ_IJON_HELPER __attribute__((unused)) static inline
#endif

typedef uint32_t ijon_u32_t;
typedef uint64_t ijon_u64_t;
typedef size_t ijon_size_t;

FFUZZ_IJON_HELPER uint64_t ijon_simple_hash(uint64_t x) {
  x = (x ^ x >> 32) * 0x9e3779b97f4a7c15u;
  return x ^ x >> 29;
}

FFUZZ_IJON_HELPER uint32_t ijon_hashint(uint32_t old, uint32_t value) {
  return (uint32_t)ijon_simple_hash((uint64_t)old << 32 | value);
}

FFUZZ_IJON_HELPER uint32_t ijon_hashmem(uint32_t old, const char *bytes, size_t n) {
  for (size_t i = 0; i < n; i++) old = ijon_hashint(old, (unsigned char)bytes[i]);
  return old;
}

FFUZZ_IJON_HELPER uint32_t ijon_hashstr(uint32_t old, const char *text) { return ijon_hashmem(old, text, strlen(text)); }

/* Length of the common beginning. */
FFUZZ_IJON_HELPER uint32_t ijon_memdist(const char *a, const char *b, size_t n) {
  size_t i = 0;
  while (i < n && a[i] == b[i]) i++;
  return (uint32_t)i;
}

FFUZZ_IJON_HELPER uint32_t ijon_strdist(const char *a, const char *b) {
  size_t i = 0;
  while (a[i] && a[i] == b[i]) i++;
  return (uint32_t)i;
}

#if defined(__AFL_COMPILER) || defined(AFL_PATH)

/* A file that includes this header registers the maps; by their names they are the same in all. */
static dsf_t __ffuzz_ijon_seen, __ffuzz_ijon_max, __ffuzz_ijon_min;
__attribute__((weak)) uint32_t __ffuzz_ijon_state;
__attribute__((weak)) int __ffuzz_ijon_is_off;

__attribute__((unused)) static void __ffuzz_ijon_begin(void) {
  __ffuzz_ijon_state = 0;
  __ffuzz_ijon_is_off = 0;
}
FFUZZ_EACH_RUN(__ffuzz_ijon_begin)

__attribute__((constructor(0))) static void __ffuzz_ijon_register(void) {
  __ffuzz_ijon_seen = __ffuzz_new_domain("ijon", 65536, FUZZFACTORY_REDUCER_LOG_BUCKET, 0);
  __ffuzz_ijon_max = __ffuzz_new_domain("ijon-max", 4096, FUZZFACTORY_REDUCER_MAX, 0);
  __ffuzz_ijon_min = __ffuzz_new_domain("ijon-min", 4096, FUZZFACTORY_REDUCER_MIN, 0xFFFFFFFF);
}

FFUZZ_IJON_HELPER uint32_t __ffuzz_ijon_shown(uint64_t value) {
  return value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

FFUZZ_IJON_HELPER void ijon_map_inc(uint32_t key) {
  if (!__ffuzz_ijon_is_off) __fuzzfactory_dsf_add_saturating(__ffuzz_ijon_seen, key ^ __ffuzz_ijon_state, 1);
}

FFUZZ_IJON_HELPER void ijon_map_set(uint32_t key) {
  if (!__ffuzz_ijon_is_off) __fuzzfactory_dsf_bitwise_or(__ffuzz_ijon_seen, key ^ __ffuzz_ijon_state, 1);
}

FFUZZ_IJON_HELPER void ijon_max(uint32_t slot, uint64_t value) {
  if (!__ffuzz_ijon_is_off) __fuzzfactory_dsf_max(__ffuzz_ijon_max, slot, __ffuzz_ijon_shown(value));
}

FFUZZ_IJON_HELPER void ijon_min(uint32_t slot, uint64_t value) {
  if (!__ffuzz_ijon_is_off) __fuzzfactory_dsf_min(__ffuzz_ijon_min, slot, __ffuzz_ijon_shown(value));
}

FFUZZ_IJON_HELPER void ijon_xor_state(uint32_t value) {
  __ffuzz_ijon_state ^= ijon_hashint(1, value);
  ijon_map_set(0);
}

/* Unlike with xor the order of states matters. */
FFUZZ_IJON_HELPER void ijon_push_state(uint32_t value) {
  __ffuzz_ijon_state = ijon_hashint(__ffuzz_ijon_state, value);
  ijon_map_set(0);
}

FFUZZ_IJON_HELPER void ijon_enable_feedback(void) { __ffuzz_ijon_is_off = 0; }
FFUZZ_IJON_HELPER void ijon_disable_feedback(void) { __ffuzz_ijon_is_off = 1; }

/* The place from which this function was called, counted from the start of the program or library. */
extern const char __ehdr_start[] __attribute__((weak, visibility("hidden")));
#define FFUZZ_IJON_CALLER ((uint32_t)((uintptr_t)__builtin_return_address(0) - (uintptr_t)__ehdr_start))

/* Where the annotation stands: hashed once. */
#define FFUZZ_IJON_PLACE                                                                \
  (__extension__({                                                                      \
    static uint32_t __ffuzz_ijon_place;                                                 \
    if (!__ffuzz_ijon_place) __ffuzz_ijon_place = ijon_hashstr(__LINE__, __FILE__) | 1; \
    __ffuzz_ijon_place;                                                                 \
  }))

#define IJON_CTX(x)                                   \
  (__extension__({                                    \
    uint32_t __ffuzz_ijon_outer = __ffuzz_ijon_state; \
    ijon_push_state(FFUZZ_IJON_PLACE);                \
    __typeof__(x) __ffuzz_ijon_value = (x);           \
    __ffuzz_ijon_state = __ffuzz_ijon_outer;          \
    __ffuzz_ijon_value;                               \
  }))

#else

#define FFUZZ_IJON_PLACE 0u
#define FFUZZ_IJON_CALLER 0u
#define ijon_map_inc(key) ((void)(key))
#define ijon_map_set(key) ((void)(key))
#define ijon_max(slot, value) ((void)(slot), (void)(value))
#define ijon_min(slot, value) ((void)(slot), (void)(value))
#define ijon_xor_state(value) ((void)(value))
#define ijon_push_state(value) ((void)(value))
#define ijon_enable_feedback() ((void)0)
#define ijon_disable_feedback() ((void)0)
#define IJON_CTX(x) (x)

#endif

#ifdef __cplusplus
}
#endif

#define FFUZZ_IJON_HIGHEST_BIT(x) ((x) ? 64 - (uint32_t)__builtin_clzll((uint64_t)(x)) : 0)
#define FFUZZ_IJON_SECOND(a, b, chosen, ...) chosen
#define FFUZZ_IJON_MAX1(x) ijon_max(FFUZZ_IJON_PLACE, (uint64_t)(x))
#define FFUZZ_IJON_MAX2(slot, x) ijon_max((uint32_t)(slot), (uint64_t)(x))
#define FFUZZ_IJON_MIN1(x) ijon_min(FFUZZ_IJON_PLACE, (uint64_t)(x))
#define FFUZZ_IJON_MIN2(slot, x) ijon_min((uint32_t)(slot), (uint64_t)(x))

/* Of the stack one caller is looked at: the depth of recursion makes no new slots. */
#define ijon_hashstack() ijon_hashint(FFUZZ_IJON_PLACE, FFUZZ_IJON_CALLER)

#define IJON_SET(x) ijon_map_set(FFUZZ_IJON_PLACE ^ (uint32_t)(x))
#define IJON_INC(x) ijon_map_inc(FFUZZ_IJON_PLACE ^ (uint32_t)(x))
#define IJON_MAX(...) FFUZZ_IJON_SECOND(__VA_ARGS__, FFUZZ_IJON_MAX2, FFUZZ_IJON_MAX1, 0)(__VA_ARGS__)
#define IJON_MIN(...) FFUZZ_IJON_SECOND(__VA_ARGS__, FFUZZ_IJON_MIN2, FFUZZ_IJON_MIN1, 0)(__VA_ARGS__)
#define IJON_MAX_AT(slot, x) FFUZZ_IJON_MAX2(slot, x)
#define IJON_MIN_AT(slot, x) FFUZZ_IJON_MIN2(slot, x)
#define IJON_STACK_MAX(x) ijon_max(ijon_hashstack(), (uint64_t)(x))
#define IJON_STACK_MIN(x) ijon_min(ijon_hashstack(), (uint64_t)(x))
#define IJON_DIST(x, y) ijon_min(FFUZZ_IJON_PLACE, (uint64_t)((x) < (y) ? (y) - (x) : (x) - (y)))
#define IJON_CMP(x, y) IJON_INC(__builtin_popcountll((uint64_t)(x) ^ (uint64_t)(y)))
#define IJON_STRDIST(x, y) IJON_SET(ijon_strdist((x), (y)))
#define IJON_BITS(x) IJON_SET(FFUZZ_IJON_HIGHEST_BIT(x))
#define IJON_STATE(x) ijon_xor_state((uint32_t)(x))

#endif
