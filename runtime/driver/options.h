/* The command line of a harness. */
#ifndef FFUZZ_DRIVER_OPTIONS_H
#define FFUZZ_DRIVER_OPTIONS_H

#include "base.h"

/* libFuzzer's options, as -name=value. */
struct driver_options {
  long runs, max_len, timeout, rss_limit_mb;
  long error_exitcode; /* -1: not given */
  long timeout_exitcode, oom_exitcode, seed, print_final_stats, verbosity, help;
  const char *artifact_prefix;
  long iterations;    /* of AFL++'s driver: inputs of one process */
  int standard_input; /* `-` */
};

HIDDEN extern struct driver_options ffuzz_driver;
/* Files and folders on the command line. */
HIDDEN extern char **ffuzz_driver_paths;
HIDDEN extern int ffuzz_driver_path_count;

/* Ends the program if there is an option that nobody would obey, and behind -help=1. */
HIDDEN void ffuzz_driver_parse(int argc, char **argv);
HIDDEN void ffuzz_driver_usage(int fd, const char *program);

#endif
