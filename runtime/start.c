/* The way from the start of a program to its main, and from its exit to its end. ffuzz-cc links with
 * --wrap=__libc_start_main, so the C library is started by us. A program that ffuzz does not run is
 * started as if we were not there. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "breakpoints.h"
#include "forkserver.h"
#include "process.h"
#include "snapshot/cycle.h"
#include "snapshot/snapshot.h"

typedef int main_function(int, char **, char **);
typedef void plain_function(void);

int __real___libc_start_main(main_function *, int, char **, plain_function *, plain_function *, plain_function *, void *);

static main_function *program_main;
static plain_function *loader_exit;

static int start_main(int argc, char **argv, char **environment) {
  if (ffuzz_breakpoints) ffuzz_breakpoints->start();
  if (ffuzz_preloaded) ffuzz_start_server();
  if (ffuzz_lasting) ffuzz_snapshot();
  return program_main(argc, argv, environment);
}

/* The first handler of exit() to be registered is the last to be called. glibc hands the exit status over
 * behind the argument; another library's rubbish there would be noticed as an outcome that differs. */
static void exit_last(void *unused, int status) {
  (void)unused;
  if (loader_exit) loader_exit();
  if (!ffuzz_is_put_back()) return;
  fflush(NULL);
  ffuzz_snapshot_run_ends(status);
}

/* Libc is not ready yet, in a static program not even its functions for strings. */
static int is_run_by_ffuzz(char **environment) {
  for (; *environment; environment++) {
    const char *name = FFUZZ_CHANNEL_ENV, *text = *environment;
    while (*name && *name == *text) name++, text++;
    if (!*name && *text == '=') return 1;
  }
  return 0;
}

int __wrap___libc_start_main(main_function *real_main, int argc, char **argv, plain_function *before,
                             plain_function *after, plain_function *loader, void *stack_end) {
  if (!ffuzz_preloaded && !is_run_by_ffuzz(argv + argc + 1))
    return __real___libc_start_main(real_main, argc, argv, before, after, loader, stack_end);
  ffuzz_snapshot_reserve();
  program_main = real_main;
  loader_exit = loader;
  return __real___libc_start_main(start_main, argc, argv, before, after, (plain_function *)(void *)exit_last, stack_end);
}
