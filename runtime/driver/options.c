/* The command line of a harness: those of libFuzzer's options that mean something without its
 * mutations. Any other is refused, because who gives one relies on it. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/options.h"

/* A new process after so many inputs: leaks and worn-out state end there, and at 100 us or so for
 * the fork against 1 us for the shortest input its cost stays below 0.1 %. */
#define INPUTS_PER_PROCESS 100000

HIDDEN struct driver_options ffuzz_driver = {
    .runs = -1, .error_exitcode = -1, .timeout_exitcode = 70, .oom_exitcode = 71, .verbosity = 1, .iterations = INPUTS_PER_PROCESS};
HIDDEN char **ffuzz_driver_paths;
HIDDEN int ffuzz_driver_path_count;

static const struct number {
  const char *name;
  long *value;
  const char *help;
} numbers[] = {
    {"runs", &ffuzz_driver.runs, "run each file N times (a folder's inputs are run once, whatever N is)"},
    {"max_len", &ffuzz_driver.max_len, "cut longer inputs of folders and of the fuzzer to N bytes (0: do not)"},
    {"timeout", &ffuzz_driver.timeout, "end when one input takes longer than N seconds (0: never)"},
    {"rss_limit_mb", &ffuzz_driver.rss_limit_mb, "end when the process takes more than N MB of memory (0: never)"},
    {"error_exitcode", &ffuzz_driver.error_exitcode,
     "exit code of a crash (default: 77 for inputs of a folder, else the crash's own signal or code)"},
    {"timeout_exitcode", &ffuzz_driver.timeout_exitcode, "exit code of -timeout (70)"},
    {"oom_exitcode", &ffuzz_driver.oom_exitcode, "exit code of -rss_limit_mb (71)"},
    {"seed", &ffuzz_driver.seed, "start of the random numbers of LLVMFuzzerMutate"},
    {"print_final_stats", &ffuzz_driver.print_final_stats, "1: print statistics at the end"},
    {"verbosity", &ffuzz_driver.verbosity, "0: no INFO lines"},
    {"help", &ffuzz_driver.help, "1: print this text"},
};
#define NUMBERS (sizeof numbers / sizeof *numbers)

/* What does the work of an option that is not here. */
static const struct {
  const char *name, *remedy;
} elsewhere[] = {
    {"merge", "Use ffuzz-cmin -i FOLDER -o NEW -- HARNESS"},
    {"minimize_crash", "Use ffuzz-tmin -i FILE -o NEW -- HARNESS"},
    {"cleanse_crash", "Use ffuzz-tmin -i FILE -o NEW -- HARNESS"},
    {"jobs", "Use ffuzz -j N"},
    {"workers", "Use ffuzz -j N"},
    {"fork", "Use ffuzz -j N"},
    {"dict", "Use ffuzz -x FILE"},
    {"max_total_time", "Use ffuzz -V SECONDS"},
};

HIDDEN void ffuzz_driver_usage(int fd, const char *program) {
  dprintf(fd,
          "%s is a libFuzzer harness, built by ffuzz-cc: it calls LLVMFuzzerTestOneInput with inputs.\n\n"
          "  ffuzz -i SEEDS -o OUT -- %s    fuzz it\n"
          "  %s FILE...                     run these inputs\n"
          "  %s FOLDER...                   run all inputs of folders; exit code 77 if one crashes\n"
          "  %s < FILE                      run one input\n\n"
          "Options of libFuzzer that it knows (under ffuzz only -max_len, -seed, -N and - matter):\n",
          program, program, program, program, program);
  for (size_t i = 0; i < NUMBERS; i++) dprintf(fd, "  -%s=N%*s %s\n", numbers[i].name,
                                               (int)(18 - strlen(numbers[i].name)), "", numbers[i].help);
  dprintf(fd, "  -artifact_prefix=PATH a copy of an input of a folder that crashes is PATHcrash-SHA1\n"
              "  -N                     a number: under ffuzz a new process after N inputs (100000)\n"
              "  -                      run standard input; ffuzz gives its inputs there\n"
              "  -ignore_remaining_args=1  what follows is for LLVMFuzzerInitialize; so is --ANYTHING\n");
}

static void refuse(const char *word, const char *remedy) {
  fprintf(stderr, "[-] ERROR: This harness does not know the option %s.\n[-] %s; -help=1 lists what it knows.\n",
          word, remedy);
  exit(1);
}

/* The value behind -NAME=, or NULL. */
static const char *value_of(const char *word, const char *name) {
  size_t length = strlen(name);
  return !strncmp(word + 1, name, length) && word[1 + length] == '=' ? word + length + 2 : NULL;
}

static void read_number(const char *word, const char *text, long *to) {
  char *end;
  errno = 0;
  *to = strtol(text, &end, 10);
  if (!*text || *end || errno) {
    fprintf(stderr, "[-] ERROR: The value of %s is not a number.\n[-] Give a whole number; -help=1 explains it.\n",
            word);
    exit(1);
  }
}

/* Of AFL++'s driver. */
static void read_iterations(const char *word) {
  read_number(word, word + 1, &ffuzz_driver.iterations);
  if (ffuzz_driver.iterations < 1 || ffuzz_driver.iterations > INT32_MAX)
    refuse(word, "Give a number of inputs from 1 to 2147483647");
}

static void read_option(const char *word) {
  for (size_t i = 0; i < NUMBERS; i++) {
    const char *value = value_of(word, numbers[i].name);
    if (value) {
      read_number(word, value, numbers[i].value);
      return;
    }
  }
  const char *prefix = value_of(word, "artifact_prefix");
  if (prefix) {
    ffuzz_driver.artifact_prefix = prefix;
    return;
  }
  for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
    if (value_of(word, elsewhere[i].name)) refuse(word, elsewhere[i].remedy);
  refuse(word, "Leave it out");
}

HIDDEN void ffuzz_driver_parse(int argc, char **argv) {
  ffuzz_driver_paths = calloc((size_t)argc + 1, sizeof *ffuzz_driver_paths);
  if (!ffuzz_driver_paths) exit(1);
  for (int i = 1; i < argc; i++) {
    if (argv[i][0] != '-')
      ffuzz_driver_paths[ffuzz_driver_path_count++] = argv[i];
    else if (!strcmp(argv[i], "-ignore_remaining_args=1"))
      break;
    else if (!argv[i][1])
      ffuzz_driver.standard_input = 1;
    else if (argv[i][1] >= '0' && argv[i][1] <= '9')
      read_iterations(argv[i]);
    else if (argv[i][1] == '-')
      fprintf(stderr, "[*] INFO: %s is left to LLVMFuzzerInitialize.\n", argv[i]);
    else
      read_option(argv[i]);
  }
  if (ffuzz_driver.help) {
    ffuzz_driver_usage(1, argv[0]);
    exit(0);
  }
}
