/* Edge counters: who has some.
 *
 * clang calls the init functions from a constructor of priority 2 in every object that was
 * compiled with coverage; all calls of one linked object name the same section. */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "counters.h"
#include "connect.h"
#include "memory.h"
#include "modules.h"
#include "process.h"

/* Address space for the counters of guards; the kernel gives memory for those that are used. */
#define GUARDS_MAX (4u << 20)

static struct module *latest;
static uint8_t *guard_counters;
static uint32_t guards_end = FFUZZ_PAGE; /* guard 0 counts nothing */

HIDDEN void ffuzz_counters(void) {}

static struct module *add_module(uint8_t *start, uint8_t *stop, uint64_t count) {
  size_t used = ffuzz_module_count * sizeof *ffuzz_modules;
  ffuzz_modules = ffuzz_grow(ffuzz_modules, used, used + sizeof *ffuzz_modules);
  struct module *new = &ffuzz_modules[ffuzz_module_count++];
  *new = (struct module){.start = start, .stop = stop, .count = count};
  return new;
}

/* Go's compiler puts its counters into clang's section, and its runtime registers them in a thread that it starts before
 * main: after the fork server. So the section is registered as a whole, with clang's counters. */
__attribute__((weak)) extern void crosscall2(void); /* of each archive that Go makes */
extern uint8_t __start___sancov_cntrs[] __attribute__((weak, visibility("hidden")));
extern uint8_t __stop___sancov_cntrs[] __attribute__((weak, visibility("hidden")));
static int has_go;

static int is_of_go(const uint8_t *start) {
  return has_go && start >= __start___sancov_cntrs && start < __stop___sancov_cntrs;
}

void __sanitizer_cov_8bit_counters_init(uint8_t *start, uint8_t *stop) {
  latest = NULL;
  if (start >= stop || is_of_go(start)) return;
  if (ffuzz_frozen) {
    ffuzz_note_late_module(start);
    return;
  }
  for (uint32_t i = 0; i < ffuzz_module_count; i++)
    if (ffuzz_modules[i].start == start) latest = &ffuzz_modules[i];
  if (latest) return;
  latest = add_module(start, stop, (uint64_t)(stop - start));
}

/* Follows the call above in the same constructor. */
void __sanitizer_cov_pcs_init(const uintptr_t *pcs, const uintptr_t *end) {
  if (!latest || latest->pcs) return;
  uint64_t length = (uint64_t)(latest->stop - latest->start);
  uint64_t count = (uint64_t)(end - pcs) / 2;
  latest->pcs = pcs;
  latest->pcs_end = end;
  if (count && count <= length) latest->count = count;
}

/* Counters of the program's own, as libFuzzer takes them: bytes of the section __libfuzzer_extra_counters. stub.c passes
 * on those of libraries. */
extern uint8_t __start___libfuzzer_extra_counters[] __attribute__((weak, visibility("hidden")));
extern uint8_t __stop___libfuzzer_extra_counters[] __attribute__((weak, visibility("hidden")));

void __ffuzz_extra_counters(uint8_t *start, uint8_t *stop) {
  __sanitizer_cov_8bit_counters_init(start, stop);
  if (latest) latest->has_no_places = 1;
  latest = NULL;
}

/* After the constructors of clang's coverage, before the fork server starts. */
__attribute__((constructor(3))) static void register_extra_counters(void) {
  __ffuzz_extra_counters(__start___libfuzzer_extra_counters, __stop___libfuzzer_extra_counters);
}

__attribute__((constructor(3))) static void register_counters_of_go(void) {
  if (!crosscall2) return;
  __sanitizer_cov_8bit_counters_init(__start___sancov_cntrs, __stop___sancov_cntrs);
  if (latest) latest->count = (uint64_t)(latest->stop - latest->start);
  latest = NULL;
  has_go = 1;
}

static int reserve_guards(void) {
  void *at = mmap(NULL, GUARDS_MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at != MAP_FAILED) guard_counters = at;
  return guard_counters != NULL;
}

/* What guards.c passes on, and stub.c. */
void __ffuzz_guard_init(uint32_t *start, uint32_t *stop) {
  if (start >= stop || *start) return;
  if (ffuzz_frozen) {
    ffuzz_note_late_module((const uint8_t *)start);
    return;
  }
  uint64_t count = (uint64_t)(stop - start), room = ffuzz_page_up(count);
  if ((!guard_counters && !reserve_guards()) || room > GUARDS_MAX - guards_end) return;
  uint8_t *counters = guard_counters + guards_end;
  add_module(counters, counters + room, count);
  for (uint32_t i = 0; i < count; i++) start[i] = guards_end + i;
  guards_end += (uint32_t)room;
}

void __ffuzz_guard(uint32_t *guard) {
  if (*guard) guard_counters[*guard]++;
}
