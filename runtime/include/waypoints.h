/* Feedback maps of your own. Built by ffuzz-cc the macros below do what they say; built by any
 * other compiler they are nothing at all, so the same source serves both.
 *
 *   FUZZFACTORY_DSF_NEW(allocated, 1, FUZZFACTORY_REDUCER_MAX, 0);   at file scope
 *   FUZZFACTORY_DSF_MAX(allocated, 0, bytes);                        in a function
 *
 * A map holds unsigned 32-bit values for keys 0 .. size-1 (other keys are taken modulo the size)
 * and starts every run with `initial` in each. The reducer says how the fuzzer keeps the best
 * value over all runs; an input that moves it is kept. */
#ifndef FFUZZ_WAYPOINTS_H
#define FFUZZ_WAYPOINTS_H

#if defined(__AFL_COMPILER) || defined(AFL_PATH)

#include <stdint.h>

/* Names that runtime files of FuzzFactory's domains use. */
#ifdef FFUZZ_DOMAIN_RUNTIME
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
#define MAP_SIZE 65536
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef int dsf_t;

enum fuzzfactory_reducer {
  FUZZFACTORY_REDUCER_MAX = 0,
  FUZZFACTORY_REDUCER_MIN = 1,
  FUZZFACTORY_REDUCER_LOG_BUCKET = 2,
  FUZZFACTORY_REDUCER_BIT_UNION = 3,
  FUZZFACTORY_REDUCER_BIT_INTERSECT = 4
};

extern uint32_t *__fuzzfactory_dsf_map;

dsf_t __ffuzz_new_domain(const char *name, uint32_t size, enum fuzzfactory_reducer reducer, uint32_t initial);
dsf_t __fuzzfactory_new_domain(uint32_t size, enum fuzzfactory_reducer reducer, uint32_t initial);
void __ffuzz_keep_map(dsf_t id, uint32_t **map);
void __ffuzz_drop_map(uint32_t **map);
void __ffuzz_discard_map(dsf_t id);
void __ffuzz_each_run(void (*hook)(void));
void __ffuzz_not_each_run(void (*hook)(void));
void __fuzzfactory_dsf_max(dsf_t id, uint32_t key, uint32_t value);
void __fuzzfactory_dsf_min(dsf_t id, uint32_t key, uint32_t value);
void __fuzzfactory_dsf_bitwise_or(dsf_t id, uint32_t key, uint32_t value);
void __fuzzfactory_dsf_set(dsf_t id, uint32_t key, uint32_t value);
void __fuzzfactory_dsf_increment(dsf_t id, uint32_t key, uint32_t value);
void __fuzzfactory_dsf_add_saturating(dsf_t id, uint32_t key, uint32_t value);
void __fuzzfactory_dsfp_max(dsf_t *id, uint32_t key, uint32_t value);
void __fuzzfactory_dsfp_min(dsf_t *id, uint32_t key, uint32_t value);
void __fuzzfactory_dsfp_bitwise_or(dsf_t *id, uint32_t key, uint32_t value);
void __fuzzfactory_dsfp_set(dsf_t *id, uint32_t key, uint32_t value);
void __fuzzfactory_dsfp_increment(dsf_t *id, uint32_t key, uint32_t value);
void __fuzzfactory_dsfp_add_saturating(dsf_t *id, uint32_t key, uint32_t value);

#ifdef __cplusplus
}
#endif

/* Domains register when a program or library is loaded; those of ffuzz's own library when it is asked for them. */
#ifdef FFUZZ_REGISTERED_BY_CALL
#define FFUZZ_AT_START __attribute__((visibility("hidden")))
#else
#define FFUZZ_AT_START __attribute__((constructor(0))) static
#endif

/* A domain that a compiler pass fills: `variable_map` is the address of its map, for updates
 * without a call. Until the runtime knows the domain it is memory of this module's own. */
#define FFUZZ_NEW_DOMAIN(variable, name, size, reducer, initial)                          \
  dsf_t variable;                                                                         \
  static uint32_t variable##_unseen[size];                                                \
  uint32_t *variable##_map = variable##_unseen;                                           \
  FFUZZ_AT_START void __ffuzz_register_##variable(void) {                                 \
    variable = __ffuzz_new_domain(name, (size), (reducer), (initial));                    \
    __ffuzz_keep_map(variable, &variable##_map);                                          \
  }                                                                                       \
  __attribute__((destructor)) static void __ffuzz_unregister_##variable(void) {           \
    __ffuzz_drop_map(&variable##_map);                                                    \
  }

/* What a key of the whole program measures; passes name the keys of places in the same table. */
#define FFUZZ_NAME_KEY(name, key, what)                                                   \
  __asm__(".pushsection .ffuzz_keys,\"\",%progbits\n"                                    \
          ".ascii \"" name "\\t" #key "\\t-\\t0\\t0\\t-\\t" what "\\n\"\n"           \
          ".popsection\n");

/* A domain called `variable` (`foo` if that is `__afl_foo_dsf`). */
#define FUZZFACTORY_DSF_NEW(variable, size, reducer, initial)                             \
  dsf_t variable;                                                                         \
  FFUZZ_AT_START void __ffuzz_register_##variable(void) {                                 \
    variable = __ffuzz_new_domain(#variable, (size), (reducer), (initial));               \
  }

/* `function` is called when a run begins: what a domain remembers of the last one ends there. */
#define FFUZZ_EACH_RUN(function)                                                          \
  FFUZZ_AT_START void __ffuzz_hook_##function(void) {                                     \
    __ffuzz_each_run(function);                                                           \
  }                                                                                       \
  __attribute__((destructor)) static void __ffuzz_unhook_##function(void) {               \
    __ffuzz_not_each_run(function);                                                       \
  }

#define FUZZFACTORY_DSF_MAX(d, k, v) __fuzzfactory_dsf_max((d), (uint32_t)(k), (uint32_t)(v))
#define FUZZFACTORY_DSF_BIT(d, k, v) __fuzzfactory_dsf_bitwise_or((d), (uint32_t)(k), (uint32_t)(v))
#define FUZZFACTORY_DSF_SET(d, k, v) __fuzzfactory_dsf_set((d), (uint32_t)(k), (uint32_t)(v))
#define FUZZFACTORY_DSF_INC(d, k, v) __fuzzfactory_dsf_increment((d), (uint32_t)(k), (uint32_t)(v))

#else

#define FUZZFACTORY_DSF_NEW(variable, size, reducer, initial)
#define FUZZFACTORY_DSF_MAX(d, k, v)
#define FUZZFACTORY_DSF_BIT(d, k, v)
#define FUZZFACTORY_DSF_SET(d, k, v)
#define FUZZFACTORY_DSF_INC(d, k, v)

#endif
#endif
