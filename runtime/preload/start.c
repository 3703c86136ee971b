/* The runtime as a library that is loaded before all others (LD_PRELOAD), into a program that was not linked with it.
 * The fork server starts when all libraries are ready, right before main. Programs that the target starts in turn
 * are none of ours. */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "preload/list.h"
#include "process.h"

/* Marks this library for who looks at files. */
__attribute__((used)) static const char marker[] = "__AFL_SHM_ID";

typedef int main_function(int, char **, char **);
typedef void plain_function(void);
typedef int start_function(main_function *, int, char **, plain_function *, plain_function *, plain_function *, void *);

start_function __real___libc_start_main, __wrap___libc_start_main;

/* Before the runtime's own constructor, which starts the fork server of programs of ffuzz-cc. */
__attribute__((constructor(3))) static void begin(void) { ffuzz_preloaded = 1; }

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
