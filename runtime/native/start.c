/* A program without instrumentation, below this preloaded runtime: the fork server starts when all of its libraries
 * are ready, right before main. Programs that it starts in turn are none of ours. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "breakpoints.h"
#include "channel.h"
#include "native/blocks.h"
#include "native/compares.h"
#include "native/signals.h"

/* Marks this library for who looks at files. */
__attribute__((used)) static const char marker[] = "__AFL_SHM_ID";

typedef int main_function(int, char **, char **);
typedef void plain_function(void);
typedef int start_function(main_function *, int, char **, plain_function *, plain_function *, plain_function *, void *);

start_function __real___libc_start_main, __wrap___libc_start_main;

/* Our names are the first of the list; programs that are started in turn get the rest. */
static void leave_preload(void) {
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
}

static void start(void) {
  int error = errno;
  leave_preload();
  ffuzz_signals_start();
  ffuzz_blocks_read();
  ffuzz_blocks_arm();
  errno = error;
}

static const struct breakpoints ours = {
    .start = start,
    .is_code = ffuzz_blocks_are_code,
    .were_met = ffuzz_blocks_were_met,
    .forget_met = ffuzz_blocks_forget_met,
    .prepare = ffuzz_blocks_prepare,
    .remove_all = ffuzz_blocks_remove_all,
    .can_log = ffuzz_compares_are_there,
    .start_log = ffuzz_blocks_log,
};

/* Before the runtime's own constructor, which starts the fork server of programs of ffuzz-cc. */
__attribute__((constructor(3))) static void begin(void) { ffuzz_breakpoints = &ours; }

int __real___libc_start_main(main_function *program_main, int argc, char **argv, plain_function *before,
                             plain_function *after, plain_function *loader, void *stack_end) {
  start_function *real = (start_function *)dlsym(RTLD_NEXT, "__libc_start_main");
  return real(program_main, argc, argv, before, after, loader, stack_end);
}

int __libc_start_main(main_function *program_main, int argc, char **argv, plain_function *before, plain_function *after,
                      plain_function *loader, void *stack_end) {
  return __wrap___libc_start_main(program_main, argc, argv, before, after, loader, stack_end);
}
