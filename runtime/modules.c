/* See modules.h. */
#include "modules.h"

HIDDEN struct module *ffuzz_modules;
HIDDEN uint32_t ffuzz_module_count;

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
