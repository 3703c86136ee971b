/* Linked into shared libraries, where no runtime may live: the program's own has the maps. Each
 * function passes on to the program's function of the same name, found when it is first needed;
 * in a program built by another compiler there is none and nothing happens. A definition (and not
 * an undefined reference) is needed because libraries are often linked with -z defs, and a plain
 * weak one would not do: a version script with `local: *` would bind the library to it for good. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>

typedef int dsf_t;

/* Weak: a libc older than 2.34 has it in another library, which need not be there. */
extern void *dlsym(void *, const char *) __attribute__((weak));

static void *program_function(const char *name, void *self, void **known) {
  void *found = __atomic_load_n(known, __ATOMIC_RELAXED);
  if (found) return found == self ? 0 : found;
  found = dlsym ? dlsym(RTLD_DEFAULT, name) : 0;
  __atomic_store_n(known, found ? found : self, __ATOMIC_RELAXED);
  return found == self ? 0 : found;
}

#define FORWARD(TYPE, OTHERWISE, NAME, PARAMETERS, ARGUMENTS)          \
  __attribute__((weak)) TYPE NAME PARAMETERS {                         \
    static void *known;                                                \
    TYPE (*call) PARAMETERS = (TYPE (*) PARAMETERS)program_function(   \
        #NAME, (void *)NAME, &known);                                  \
    if (!call) return OTHERWISE;                                       \
    return call ARGUMENTS;                                             \
  }

FORWARD(void, , __sanitizer_cov_8bit_counters_init, (uint8_t *a, uint8_t *b), (a, b))
FORWARD(void, , __sanitizer_cov_pcs_init, (const uintptr_t *a, const uintptr_t *b), (a, b))
FORWARD(void, , __ffuzz_extra_counters, (uint8_t *a, uint8_t *b), (a, b))
FORWARD(void, , __ffuzz_guard_init, (uint32_t *a, uint32_t *b), (a, b))
FORWARD(void, , __ffuzz_guard, (uint32_t *g), (g))
FORWARD(dsf_t, -1, __ffuzz_new_domain, (const char *n, uint32_t s, uint32_t r, uint32_t i), (n, s, r, i))
FORWARD(dsf_t, -1, __fuzzfactory_new_domain, (uint32_t s, uint32_t r, uint32_t i), (s, r, i))
FORWARD(void, , __ffuzz_keep_map, (dsf_t d, uint32_t **m), (d, m))
FORWARD(void, , __ffuzz_drop_map, (uint32_t **m), (m))
FORWARD(void, , __ffuzz_discard_map, (dsf_t d), (d))
FORWARD(void, , __ffuzz_each_run, (void (*h)(void)), (h))
FORWARD(void, , __ffuzz_not_each_run, (void (*h)(void)), (h))
FORWARD(void, , __ffuzz_touch, (uint32_t *p), (p))
FORWARD(uint32_t, o + v < o ? UINT32_MAX : o + v, __ffuzz_first_or_full, (uint32_t *p, uint32_t o, uint32_t v), (p, o, v))

FORWARD(void, , __afl_coverage_on, (void), ())
FORWARD(void, , __afl_coverage_off, (void), ())
FORWARD(void, , __afl_coverage_discard, (void), ())
FORWARD(void, , __afl_coverage_skip, (void), ())

FORWARD(void, , __ffuzz_log_flag, (uint8_t *f), (f))
FORWARD(void, , __ffuzz_log_values, (uint32_t s, uint32_t h, uint64_t a, uint64_t b), (s, h, a, b))
FORWARD(void, , __ffuzz_log_wide, (uint32_t s, uint32_t h, uint64_t a, uint64_t c, uint64_t b, uint64_t d), (s, h, a, c, b, d))
FORWARD(void, , __ffuzz_log_switch, (uint32_t s, uint32_t h, uint64_t v, const uint64_t *c, uint32_t n), (s, h, v, c, n))
FORWARD(void, , __ffuzz_log_memory, (uint32_t s, uint32_t h, const void *a, const void *b, uint64_t n), (s, h, a, b, n))
FORWARD(void, , __ffuzz_log_text, (uint32_t s, uint32_t h, const char *a, const char *b, uint64_t n), (s, h, a, b, n))
FORWARD(void, , __ffuzz_log_string, (uint32_t s, uint32_t h, const void *a, const void *b, uint32_t k), (s, h, a, b, k))
FORWARD(void, , __ffuzz_log_string_part, (uint32_t s, uint32_t h, const void *a, uint32_t k, uint64_t f, uint64_t c, const char *b, uint64_t n), (s, h, a, k, f, c, b, n))
FORWARD(void, , __ffuzz_log_maybe, (uint32_t s, uint32_t h, const void *a, const void *b, uint64_t n), (s, h, a, b, n))
FORWARD(void, , __ffuzz_log_search, (uint32_t s, uint32_t h, const char *a, uint64_t n, const char *b, uint64_t m), (s, h, a, n, b, m))

#define UPDATE(NAME)                                                                        \
  FORWARD(void, , __fuzzfactory_dsf_##NAME, (dsf_t d, uint32_t k, uint32_t v), (d, k, v))   \
  FORWARD(void, , __fuzzfactory_dsfp_##NAME, (dsf_t *d, uint32_t k, uint32_t v), (d, k, v))

UPDATE(max)
UPDATE(min)
UPDATE(bitwise_or)
UPDATE(set)
UPDATE(increment)
UPDATE(add_saturating)

/* Not passed on under their own names, which a sanitizer's functions in the program have too. */
__attribute__((weak)) void __sanitizer_cov_trace_pc_guard_init(uint32_t *a, uint32_t *b) { __ffuzz_guard_init(a, b); }
__attribute__((weak)) void __sanitizer_cov_trace_pc_guard(uint32_t *g) { __ffuzz_guard(g); }

/* Counters of the library's own, see counters.c. */
extern uint8_t __start___libfuzzer_extra_counters[] __attribute__((weak, visibility("hidden")));
extern uint8_t __stop___libfuzzer_extra_counters[] __attribute__((weak, visibility("hidden")));

__attribute__((constructor)) static void register_extra_counters(void) {
  uint8_t *start = __start___libfuzzer_extra_counters, *stop = __stop___libfuzzer_extra_counters;
  if (start < stop) __ffuzz_extra_counters(start, stop);
}
