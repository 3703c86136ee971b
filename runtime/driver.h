/* What the parts of the driver behind -fsanitize=fuzzer know of each other. */
#ifndef FFUZZ_DRIVER_H
#define FFUZZ_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#include "ffuzz-rt.h"

typedef int harness(const uint8_t *, size_t);

/* libFuzzer's options, as -name=value. */
struct driver_options {
  long runs, max_len, timeout, rss_limit_mb;
  long error_exitcode; /* -1: not given */
  long timeout_exitcode, oom_exitcode, seed, print_final_stats, verbosity, help;
  const char *artifact_prefix;
};

HIDDEN extern struct driver_options ffuzz_driver;
/* Files and folders on the command line. */
HIDDEN extern char **ffuzz_driver_paths;
HIDDEN extern int ffuzz_driver_path_count;

/* Ends the program if there is an option that nobody would obey, and behind -help=1. */
HIDDEN void ffuzz_driver_parse(int argc, char **argv);
HIDDEN void ffuzz_driver_usage(int fd, const char *program);

HIDDEN void ffuzz_driver_run_one(harness *test, const uint8_t *data, size_t size);
HIDDEN int ffuzz_driver_run_file(harness *test, const char *path, size_t most, unsigned long times);
/* Everything that is not for a fuzzer; the exit code. */
HIDDEN int ffuzz_driver_by_hand(harness *test, const char *program);

/* A crash from now on is told together with the name of its input. */
HIDDEN void ffuzz_driver_watch(void);
/* The input that is about to be run; a path of NULL: none is. */
HIDDEN void ffuzz_driver_input(const char *path, const uint8_t *data, size_t size, int in_folder);

/* Ends the program if that input has taken too much time or memory. */
HIDDEN void ffuzz_driver_check_limits(void);

#endif
