/* The table of modules: where the part of each one lies in the edge map. */
#ifndef FFUZZ_MODULES_H
#define FFUZZ_MODULES_H

#include "base.h"

/* One object with counters of its own, as its constructor registered it. */
struct module {
  uint8_t *start, *stop;        /* section __sancov_cntrs, padded when our linker script was used */
  const uintptr_t *pcs, *pcs_end; /* pairs of address and flags, one per counter */
  uint64_t at;                  /* index of its first counter in the map */
  uint64_t count;               /* true number of counters */
  int has_no_places;            /* bytes of the program's own, see counters.c */
  int mapped;                   /* its pages are the shared map; otherwise counters are copied */
};

HIDDEN extern struct module *ffuzz_modules;
HIDDEN extern uint32_t ffuzz_module_count;

HIDDEN uint64_t ffuzz_map_size(void);

#endif
