/* The runtime as a library that is loaded before all others (LD_PRELOAD), into a program that was not linked with it.
 * The fork server starts when all libraries are ready, right before main. Programs that the target starts in turn
 * are none of ours. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "process.h"

/* Marks this library for who looks at files. */
__attribute__((used)) static const char marker[] = "__AFL_SHM_ID";

typedef int main_function(int, char **, char **);
typedef void plain_function(void);
typedef int start_function(main_function *, int, char **, plain_function *, plain_function *, plain_function *, void *);

start_function __real___libc_start_main, __wrap___libc_start_main;

/* Before the runtime's own constructor, which starts the fork server of programs of ffuzz-cc. */
__attribute__((constructor(3))) static void begin(void) { ffuzz_preloaded = 1; }

/* Our names are the first of the list; programs that are started in turn get the rest. */
static void leave_preload(void) {
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

int __real___libc_start_main(main_function *program_main, int argc, char **argv, plain_function *before,
                             plain_function *after, plain_function *loader, void *stack_end) {
  start_function *real = (start_function *)dlsym(RTLD_NEXT, "__libc_start_main");
  return real(program_main, argc, argv, before, after, loader, stack_end);
}

int __libc_start_main(main_function *program_main, int argc, char **argv, plain_function *before, plain_function *after,
                      plain_function *loader, void *stack_end) {
  leave_preload();
  return __wrap___libc_start_main(program_main, argc, argv, before, after, loader, stack_end);
}
