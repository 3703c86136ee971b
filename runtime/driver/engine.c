/* Fuzzing by a harness that is started by hand: the ffuzz that has linked it does that. As in libFuzzer, the command
 * line decides between that and a replay of files. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "driver/engine.h"
#include "channel.h"
#include "driver/mutations.h"
#include "driver/options.h"

/* runtime/where.c; not there in a program that another linker command made. */
__attribute__((weak)) extern const char __ffuzz_program[];

static const char *const fuzzer_variables[] = {FFUZZ_CHANNEL_ENV, FFUZZ_MUTATOR_ENV, FFUZZ_HARNESS_SIGNAL_ENV,
                                               "__AFL_SHM_ID", "__AFL_PERSISTENT"};

static int is_run_by_a_fuzzer(void) {
  for (size_t i = 0; i < sizeof fuzzer_variables / sizeof *fuzzer_variables; i++)
    if (getenv(fuzzer_variables[i])) return 1;
  return 0;
}

/* Options of libFuzzer that need a search, or a look at many inputs at once. */
static const char *const searching[] = {"-merge=",         "-set_cover_merge=", "-minimize_crash=", "-cleanse_crash=",
                                        "-analyze_dict=",  "-jobs=",            "-fork=",           "-collect_data_flow="};

static int searches(const char *word) {
  for (size_t i = 0; i < sizeof searching / sizeof *searching; i++) {
    size_t length = strlen(searching[i]);
    if (!strncmp(word, searching[i], length) && strcmp(word + length, "0")) return 1;
  }
  return 0;
}

/* libFuzzer replays if all paths are files. Standard input is an input where it is a file, or for `-`. */
static int is_to_fuzz(int argc, char **argv) {
  int paths = 0, folders = 0, is_search = 0;
  long runs = -1;
  struct stat info;
  for (int i = 1; i < argc && strcmp(argv[i], "-ignore_remaining_args=1"); i++) {
    const char *word = argv[i];
    if (!strcmp(word, "-") || (!strncmp(word, "-help=", 6) && ffuzz_driver_number(word + 6))) return 0;
    if (!strncmp(word, "-runs=", 6)) runs = ffuzz_driver_number(word + 6);
    is_search |= searches(word);
    if (word[0] == '-') continue;
    paths++;
    folders += stat(word, &info) || S_ISDIR(info.st_mode);
  }
  if (is_search || !runs) return is_search;
  if (paths) return folders > 0;
  return fstat(0, &info) || !S_ISREG(info.st_mode);
}

static void try_program(const char *program, char **words) {
  words[0] = (char *)program;
  execvp(program, words);
}

HIDDEN void ffuzz_driver_become_engine(int argc, char **argv) {
  if (is_run_by_a_fuzzer() || !is_to_fuzz(argc, argv)) return;
  char **words = calloc((size_t)argc + 3, sizeof *words);
  const char *chosen = getenv("FFUZZ");
  char self[4096];
  ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  if (!words || length <= 0) return;
  self[length] = 0;
  words[1] = "libfuzzer";
  words[2] = self;
  memcpy(words + 3, argv + 1, (size_t)(argc - 1) * sizeof *words);
  if (chosen) {
    try_program(chosen, words);
  } else {
    if (__ffuzz_program && __ffuzz_program[0] == '/') try_program(__ffuzz_program, words);
    try_program("ffuzz", words);
  }
  fprintf(stderr, "ERROR: cannot start %s: %s\n", chosen ? chosen : "ffuzz", strerror(errno));
  fprintf(stderr, "hint: ffuzz fuzzes this harness: set FFUZZ to its path, or add its folder to PATH\n");
  exit(1);
}
