/* Edge counters: who has some, and where each module's part of the map lies.
 *
 * clang calls the two init functions from a constructor of priority 2 in every object that was
 * compiled with coverage; all calls of one linked object name the same section. */
#define _GNU_SOURCE
#include "ffuzz-rt.h"

HIDDEN struct module *ffuzz_modules;
HIDDEN uint32_t ffuzz_module_count;
HIDDEN int ffuzz_frozen;

static struct module *latest;

void __sanitizer_cov_8bit_counters_init(uint8_t *start, uint8_t *stop) {
  latest = NULL;
  if (start >= stop) return;
  if (ffuzz_frozen) {
    ffuzz_note_late_module(start);
    return;
  }
  for (uint32_t i = 0; i < ffuzz_module_count; i++)
    if (ffuzz_modules[i].start == start) latest = &ffuzz_modules[i];
  if (latest) return;
  size_t used = ffuzz_module_count * sizeof *ffuzz_modules;
  ffuzz_modules = ffuzz_grow(ffuzz_modules, used, used + sizeof *ffuzz_modules);
  latest = &ffuzz_modules[ffuzz_module_count++];
  *latest = (struct module){.start = start, .stop = stop, .count = (uint64_t)(stop - start)};
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

/* Gives each module whole pages of the map; the size ends with the last counter in use. A program
 * without any counter has a map of one byte, because nobody accepts an empty one. */
HIDDEN uint64_t ffuzz_map_size(void) {
  uint64_t at = 0, size = 1;
  for (uint32_t i = 0; i < ffuzz_module_count; i++) {
    struct module *m = &ffuzz_modules[i];
    m->at = at;
    size = at + m->count;
    at += ffuzz_page_up(m->count);
  }
  return size;
}
