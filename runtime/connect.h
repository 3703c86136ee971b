/* Shared memory with whoever runs this program. */
#ifndef FFUZZ_CONNECT_H
#define FFUZZ_CONNECT_H

#include "base.h"

HIDDEN void ffuzz_connect(void);
/* An object with counters was loaded after that. */
HIDDEN void ffuzz_note_late_module(const uint8_t *start);

/* FuzzFactory's fuzzer: its segment is in use, and so many domains fit into it (all or none). */
HIDDEN int ffuzz_speaks_legacy(void);
#define FFUZZ_LEGACY_DOMAINS 4u
HIDDEN uint32_t ffuzz_legacy_domains(void);

#endif
