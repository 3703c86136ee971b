/* The command line of a harness: libFuzzer's options, and the words of AFL++'s driver. */
#define _GNU_SOURCE
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "driver/options.h"

/* A new process after so many inputs: leaks and worn-out state end there, and at 100 us or so for
 * the fork against 1 us for the shortest input its cost stays below 0.1 %. */
#define INPUTS_PER_PROCESS 100000

HIDDEN struct driver_options ffuzz_driver = {
#define NUMBER(name, usual, help) .name = usual,
#define TEXT(name, help) .name = "",
#include "driver/options.def"
#undef NUMBER
#undef TEXT
    .iterations = INPUTS_PER_PROCESS};
HIDDEN char **ffuzz_driver_paths;
HIDDEN int ffuzz_driver_path_count;

static struct option {
  const char *name, *help;
  long *number;
  const char **text;
  int is_given;
} options[] = {
#define NUMBER(name, usual, help) {#name, help, &ffuzz_driver.name, NULL, 0},
#define TEXT(name, help) {#name, help, NULL, &ffuzz_driver.name, 0},
#include "driver/options.def"
#undef NUMBER
#undef TEXT
};
#define OPTIONS (sizeof options / sizeof *options)

/* What shows the result of an option that a replay does not have. */
static const struct {
  const char *name, *instead;
} elsewhere[] = {
    {"print_pcs", "ffuzz-tracer shows what an input executes"},
    {"focus_function", "the whole program is looked at"},
    {"data_flow_trace", "ffuzz finds by itself which bytes decide"},
    {"trace_malloc", "WAYPOINTS=mem ffuzz-cc counts allocations"},
    {"exit_on_src_pos", "ffuzz-tracer shows what an input executes"},
    {"exit_on_item", "the names of files tell which inputs run"},
};

static void print_help(const char *program) {
  fprintf(stderr,
          "A libFuzzer harness, built by ffuzz-cc.\n\n"
          "  %s [-NAME=VALUE...] [FOLDER...]  fuzz; new inputs go to the first folder\n"
          "  %s [-NAME=VALUE...] FILE...      run these inputs\n"
          "  %s -runs=0 FOLDER...             run all inputs of folders\n"
          "  %s < FILE                        run one input, which ends the harness by its own signal\n\n"
          "Options (of several the last one counts):\n",
          program, program, program, program);
  for (size_t i = 0; i < OPTIONS; i++) {
    if (options[i].number)
      fprintf(stderr, "  %-38s %6ld  %s\n", options[i].name, *options[i].number, options[i].help);
    else
      fprintf(stderr, "  %-38s %6s  %s\n", options[i].name, "", options[i].help);
  }
  fprintf(stderr, "Under ffuzz only -max_len and -seed matter, and these words of AFL++'s driver:\n"
                  "  -N  a number: a new process after N inputs (100000)\n"
                  "  -   run standard input; ffuzz gives its inputs there\n");
}

HIDDEN long ffuzz_driver_number(const char *text) {
  int is_negative = *text == '-';
  long number = 0;
  for (text += is_negative; *text >= '0' && *text <= '9'; text++)
    if (__builtin_mul_overflow(number, 10, &number) || __builtin_add_overflow(number, *text - '0', &number)) {
      number = LONG_MAX;
      break;
    }
  return is_negative ? -number : number;
}

static struct option *named(const char *word, size_t length) {
  for (size_t i = 0; i < OPTIONS; i++)
    if (strlen(options[i].name) == length && !strncmp(options[i].name, word, length)) return &options[i];
  return NULL;
}

static void read_option(const char *word) {
  const char *value = strchr(word, '=');
  struct option *option = value ? named(word + 1, (size_t)(value - word - 1)) : NULL;
  if (!option) {
    fprintf(stderr, "WARNING: unrecognized flag '%s'; use -help=1 to list all flags\n\n", word);
    return;
  }
  long before = option->number ? *option->number : 0;
  if (option->number)
    *option->number = ffuzz_driver_number(value + 1);
  else
    *option->text = value + 1;
  option->is_given = 1;
  if (ffuzz_driver.verbosity >= 2) fprintf(stderr, "Flag: %s %s\n", option->name, value + 1);
  if (option->number ? *option->number == before : !value[1]) return;
  for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
    if (!strcmp(elsewhere[i].name, option->name))
      fprintf(stderr, "WARNING: -%s is not supported: %s\n", option->name, elsewhere[i].instead);
}

/* A number is one of AFL++'s driver; libFuzzer has no such option. */
static int is_iterations(const char *word) {
  size_t digits = strspn(word + 1, "0123456789");
  long number = ffuzz_driver_number(word + 1);
  if (!digits || word[1 + digits] || number < 1 || number > INT32_MAX) return 0;
  ffuzz_driver.iterations = number;
  return 1;
}

static void read_word(char *word) {
  if (word[0] != '-')
    ffuzz_driver_paths[ffuzz_driver_path_count++] = word;
  else if (!word[1])
    ffuzz_driver.standard_input = 1;
  else if (word[1] == '-')
    fprintf(stderr, "WARNING: did you mean '%s' (single dash)?\nINFO: libFuzzer ignores flags that start with '--'\n",
            word + 1);
  else if (!is_iterations(word))
    read_option(word);
}

/* Without libFuzzer's command line its limits are not expected either. */
static void leave_limits_out(void) {
  for (size_t i = 0; i < OPTIONS; i++) {
    struct option *option = &options[i];
    int is_limit = option->number == &ffuzz_driver.timeout || option->number == &ffuzz_driver.rss_limit_mb;
    if (is_limit && !option->is_given) *option->number = 0;
  }
}

HIDDEN void ffuzz_driver_parse(int argc, char **argv) {
  struct stat info;
  ffuzz_driver.artifact_prefix = "./";
  ffuzz_driver_paths = calloc((size_t)argc + 1, sizeof *ffuzz_driver_paths);
  if (!ffuzz_driver_paths) exit(1);
  for (int i = 1; i < argc && strcmp(argv[i], "-ignore_remaining_args=1"); i++) read_word(argv[i]);
  if (ffuzz_driver.help) {
    print_help(argv[0]);
    exit(0);
  }
  ffuzz_driver.is_for_tool = getenv(FFUZZ_HARNESS_SIGNAL_ENV) != NULL;
  int is_file = ffuzz_driver.runs && !fstat(0, &info) && S_ISREG(info.st_mode);
  int has_no_path = !ffuzz_driver_path_count && (ffuzz_driver.is_for_tool || is_file);
  ffuzz_driver.is_one_input = ffuzz_driver.standard_input || has_no_path;
  if (ffuzz_driver.is_for_tool || ffuzz_driver.is_one_input) leave_limits_out();
}
