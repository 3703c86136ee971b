/* The command line of a harness. */
#ifndef FFUZZ_DRIVER_OPTIONS_H
#define FFUZZ_DRIVER_OPTIONS_H

#include "base.h"

/* Tools of ffuzz set it: a crash ends the harness by its own signal, and nothing is printed. */
#define FFUZZ_HARNESS_SIGNAL_ENV "FFUZZ_HARNESS_SIGNAL"

/* libFuzzer's options, as -name=value. */
struct driver_options {
#define NUMBER(name, usual, help) long name;
#define TEXT(name, help) const char *name;
#include "driver/options.def"
#undef NUMBER
#undef TEXT
  long iterations;    /* of AFL++'s driver: inputs of one process */
  int standard_input; /* `-` */
  int is_one_input;   /* that of standard input: for `-`, or a file where no paths are on the command line */
  int is_for_tool;
};

HIDDEN extern struct driver_options ffuzz_driver;
/* Files and folders on the command line. */
HIDDEN extern char **ffuzz_driver_paths;
HIDDEN extern int ffuzz_driver_path_count;

/* Ends the program behind -help=1. */
HIDDEN void ffuzz_driver_parse(int argc, char **argv);
/* Digits up to the first other character, as libFuzzer reads numbers. */
HIDDEN long ffuzz_driver_number(const char *text);

#endif
