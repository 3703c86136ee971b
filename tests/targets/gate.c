/* A disk that does not answer, for LD_PRELOAD: whoever opens a file of a package that is being unpacked waits until
 * somebody writes to the FIFO that GATE names. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

int open64(const char *path, int flags, ...) {
  int (*next)(const char *, int, ...) = dlsym(RTLD_NEXT, "open64");
  va_list rest;
  va_start(rest, flags);
  mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  const char *gate = getenv("GATE");
  if (gate && strstr(path, "/.package-")) close(next(gate, O_RDONLY));
  return next(path, flags, mode);
}
