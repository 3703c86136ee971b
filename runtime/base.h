/* What every part of the runtime starts from. Nothing here is for users: their interface is
 * include/waypoints.h and the macros that ffuzz-cc defines.
 *
 * The runtime is plain C without libc start-up needs beyond mmap, fork and friends: it runs in
 * constructors, before main and before most sanitizers are ready, so it never calls malloc or
 * stdio. It must be linkable with every supported clang, hence no bitcode and no new builtins.
 *
 * A file includes its own header and those of lower layers; tests/tidy.rs has the list of layers. */
#ifndef FFUZZ_BASE_H
#define FFUZZ_BASE_H

#include <stddef.h>
#include <stdint.h>

#include "channel.h"

#define HIDDEN __attribute__((visibility("hidden")))

static inline uint64_t ffuzz_page_up(uint64_t n) {
  return (n + FFUZZ_PAGE - 1) & ~(uint64_t)(FFUZZ_PAGE - 1);
}

#endif
