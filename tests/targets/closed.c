/* A folder that cannot be listed, for LD_PRELOAD, because root can list any: CLOSED names it, and it is closed as long as
 * the file CLOSED.mark exists. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

DIR *opendir(const char *name) {
  DIR *(*next)(const char *) = dlsym(RTLD_NEXT, "opendir");
  const char *closed = getenv("CLOSED");
  char mark[4096];
  if (closed && strcmp(name, closed) == 0) {
    snprintf(mark, sizeof mark, "%s.mark", closed);
    if (access(mark, F_OK) == 0) {
      errno = EACCES;
      return NULL;
    }
  }
  return next(name);
}
