/* The libraries that the loader puts into a program before all others (ld.so(8)). */
#ifndef FFUZZ_PRELOAD_LIST_H
#define FFUZZ_PRELOAD_LIST_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Our names are the first of the list; programs that are started in turn get the rest. */
static inline void leave_preload(void) {
  int error = errno;
  const char *rest = getenv("LD_PRELOAD");
  for (const char *next; rest && *rest; rest = next) {
    size_t length = strcspn(rest, ": ");
    const char *name = memrchr(rest, '/', length);
    if (!name || strncmp(name, "/libffuzz-", 10)) break;
    next = rest + length + (rest[length] != 0);
  }
  if (rest && *rest)
    setenv("LD_PRELOAD", rest, 1);
  else
    unsetenv("LD_PRELOAD");
  errno = error;
}

#endif
