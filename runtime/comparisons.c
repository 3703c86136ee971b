/* What objects call that were instrumented by another compiler call (-fsanitize-coverage=trace-cmp: those of Rust and
 * stock clang), for the log of comparisons. An object of its own, because such a program can log, and so that a program
 * may have its own functions; a sanitizer's runtime has some too, and ffuzz-cc asks for these then. */
#define _GNU_SOURCE
#include "comparisons.h"

#include <link.h>
#include <string.h>

#include "log.h"

/* Linked objects that are told apart. */
#define MOST_OBJECTS 64u

/* Where an object's code lies, and its name as a number. */
struct object {
  uintptr_t base, start, end;
  uint32_t name;
};

void __ffuzz_comparisons(void) {} /* the name by which the linker is asked for this object */

HIDDEN uint8_t ffuzz_foreign_log;

/* Before the fork server, which may start early. */
__attribute__((constructor(3))) static void offer(void) { __ffuzz_log_flag(&ffuzz_foreign_log); }

static struct object objects[MOST_OBJECTS];
static uint32_t object_count;
static int is_read;

/* FNV-1a of the file's name; the program has none. */
static uint32_t number_of(const char *path) {
  const char *slash = strrchr(path, '/');
  uint32_t hash = 0x811c9dc5u;
  for (const char *at = slash ? slash + 1 : path; *at; at++) hash = (hash ^ (uint8_t)*at) * 0x01000193u;
  return hash;
}

static int add(struct dl_phdr_info *info, size_t size, void *count) {
  (void)size;
  uint32_t *used = count;
  for (int i = 0; i < info->dlpi_phnum && *used < MOST_OBJECTS; i++) {
    const ElfW(Phdr) *part = &info->dlpi_phdr[i];
    if (part->p_type != PT_LOAD || !(part->p_flags & PF_X)) continue;
    uintptr_t start = info->dlpi_addr + part->p_vaddr;
    const char *name = info->dlpi_name ? info->dlpi_name : "";
    objects[(*used)++] = (struct object){info->dlpi_addr, start, start + part->p_memsz, number_of(name)};
  }
  return 0;
}

HIDDEN uint32_t ffuzz_site_of(const void *address) {
  if (!__atomic_load_n(&is_read, __ATOMIC_ACQUIRE)) {
    /* Threads that come here together write the same. */
    uint32_t count = 0;
    dl_iterate_phdr(add, &count);
    __atomic_store_n(&object_count, count, __ATOMIC_RELAXED);
    __atomic_store_n(&is_read, 1, __ATOMIC_RELEASE);
  }
  uintptr_t at = (uintptr_t)address;
  for (uint32_t i = 0; i < object_count; i++)
    if (at >= objects[i].start && at < objects[i].end) return (uint32_t)(at - objects[i].base) + objects[i].name;
  return (uint32_t)at;
}

#define CALLER __builtin_return_address(0)
#define SITE ffuzz_site_of(CALLER)
#define HOW(KIND, BYTES, FLAGS) ((uint32_t)(BYTES) | (uint32_t)(KIND) << 8 | (uint32_t)(FLAGS) << 16)

__attribute__((noinline)) ANY_STACK static void log_integers(const void *caller, uint32_t how, uint64_t a, uint64_t b) {
  __ffuzz_log_values(ffuzz_site_of(caller), how, a, b);
}

/* Whether their order or their equality counts is not known. Of constants clang gives the first. */
#define INTEGERS(BYTES, TYPE)                                                                              \
  void __sanitizer_cov_trace_cmp##BYTES(TYPE a, TYPE b) {                                                  \
    if (ffuzz_foreign_log) log_integers(CALLER, HOW(FFUZZ_LOG_EQUAL, BYTES, 0), a, b);                     \
  }                                                                                                        \
  void __sanitizer_cov_trace_const_cmp##BYTES(TYPE a, TYPE b) {                                            \
    if (ffuzz_foreign_log)                                                                                 \
      log_integers(CALLER, HOW(FFUZZ_LOG_EQUAL, BYTES, FFUZZ_LOG_CONSTANT_A), a, b);                       \
  }

INTEGERS(1, uint8_t)
INTEGERS(2, uint16_t)
INTEGERS(4, uint32_t)
INTEGERS(8, uint64_t)

/* Their number, the bits of the value, and the cases. */
void __sanitizer_cov_trace_switch(uint64_t value, uint64_t *cases) {
  if (ffuzz_foreign_log)
    __ffuzz_log_switch(SITE, HOW(FFUZZ_LOG_SWITCH, cases[1] / 8, 0), value, cases + 2, (uint32_t)cases[0]);
}

/* A divisor, compared with the one that crashes. */
#define DIVISORS(BYTES, TYPE)                                                                              \
  void __sanitizer_cov_trace_div##BYTES(TYPE divisor) {                                                    \
    if (ffuzz_foreign_log)                                                                                 \
      __ffuzz_log_values(SITE, HOW(FFUZZ_LOG_EQUAL, BYTES, FFUZZ_LOG_CONSTANT_A), 0, divisor);             \
  }

DIVISORS(4, uint32_t)
DIVISORS(8, uint64_t)

/* gcc's. */
void __sanitizer_cov_trace_cmpf(float a, float b) {
  uint32_t left, right;
  memcpy(&left, &a, sizeof left);
  memcpy(&right, &b, sizeof right);
  if (ffuzz_foreign_log) __ffuzz_log_values(SITE, HOW(FFUZZ_LOG_FLOAT, sizeof a, 0), left, right);
}

void __sanitizer_cov_trace_cmpd(double a, double b) {
  uint64_t left, right;
  memcpy(&left, &a, sizeof left);
  memcpy(&right, &b, sizeof right);
  if (ffuzz_foreign_log) __ffuzz_log_values(SITE, HOW(FFUZZ_LOG_FLOAT, sizeof a, 0), left, right);
}
