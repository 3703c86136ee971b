/* Calls that the chosen files make of functions of other files: which ones lead to us, and where they come from. */
#ifndef FFUZZ_NATIVE_CALLERS_H
#define FFUZZ_NATIVE_CALLERS_H

#include <link.h>

#include "base.h"

/* A function of another file, what is called instead, and, if `real` is not NULL, where its address is stored. */
struct replacement {
  const char *name;
  void *by;
  void *real;
};

/* A chosen file. `identity` is the same in each process and on each machine. */
HIDDEN void ffuzz_callers_add(const struct dl_phdr_info *info, uint32_t identity);
/* Before main, while there is one thread. What dlsym() looks up later, and libraries that are loaded later, see the
 * functions themselves. */
HIDDEN void ffuzz_callers_redirect(const struct replacement *list, size_t count);
/* A key of a place in a file, never a multiple of 65536. */
HIDDEN uint32_t ffuzz_place_key(uint32_t identity, uint32_t address);
/* That of the call that returns to this address; 0 if no chosen file has it. */
HIDDEN uint32_t ffuzz_caller_key(const void *return_address);

#endif
