/* A harness that is started by hand: files, the inputs of folders, or one input from standard input. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "driver/files.h"
#include "driver/corpus.h"
#include "driver/crash.h"
#include "driver/limits.h"
#include "driver/options.h"
#include "driver/report.h"
#include "edge-map.h"
#include "replay.h"

static size_t most_bytes(void) { return ffuzz_driver.max_len > 0 ? (size_t)ffuzz_driver.max_len : SIZE_MAX; }

static long repetitions(void) { return ffuzz_driver.runs < 1 ? 1 : ffuzz_driver.runs; }

/* For a tool, or an input before those of the command line: nothing is said of it. */
static int run_quietly(harness *test, const char *path, long times) {
  size_t size;
  uint8_t *data = ffuzz_driver_read(path, most_bytes(), &size);
  if (!data) return 1;
  for (; times > 0; times--) ffuzz_driver_run(test, data, size);
  free(data);
  return 0;
}

static void run_file(harness *test, const char *path) {
  size_t size;
  ffuzz_driver_print("Running: %s\n", path);
  uint8_t *data = ffuzz_driver_read(path, most_bytes(), &size);
  if (!data) exit(1);
  double begun = ffuzz_driver_seconds();
  for (long times = repetitions(); times > 0; times--) {
    ffuzz_driver_run(test, data, size);
    ffuzz_driver_look_for_leaks(test, data, size);
  }
  ffuzz_driver_print("Executed %s in %ld ms\n", path, (long)((ffuzz_driver_seconds() - begun) * 1000));
  free(data);
}

static int run_files(harness *test, const char *program) {
  ffuzz_driver_print("%s: Running %d inputs %ld time(s) each.\n", program, ffuzz_driver_path_count, repetitions());
  for (int i = 0; i < ffuzz_driver_path_count; i++) run_file(test, ffuzz_driver_paths[i]);
  ffuzz_driver_print("***\n*** NOTE: fuzzing was not performed, you have only\n"
                     "***       executed the target code on a fixed set of inputs.\n***\n");
  if (ffuzz_driver.print_coverage || ffuzz_driver.print_full_coverage)
    ffuzz_driver_print("COVERAGE: ffuzz-showmap and ffuzz-tracer show what an input executes\n");
  return 0;
}

static int is_folder(const char *path) {
  struct stat info;
  return !stat(path, &info) && S_ISDIR(info.st_mode);
}

static void make_folders(char *path) {
  for (char *slash = path + (*path == '/'); (slash = strchr(slash, '/')); slash++) {
    *slash = 0;
    mkdir(path, 0777);
    *slash = '/';
  }
  mkdir(path, 0777);
}

static void want_folder(const char *path) {
  struct stat info;
  char *own = strdup(path);
  if (own && ffuzz_driver.create_missing_dirs && stat(path, &info)) make_folders(own);
  free(own);
  if (!stat(path, &info)) return;
  ffuzz_driver_print("ERROR: The required directory \"%s\" does not exist\n", path);
  exit(1);
}

/* The folder of a name that a file's name begins with. */
static void want_folder_of(const char *name) {
  const char *slash = strrchr(name, '/');
  char *folder = slash ? strndup(name, (size_t)(slash - name) + 1) : NULL;
  if (folder) want_folder(folder);
  free(folder);
}

static void begin(void) {
  if (!ffuzz_driver.seed) ffuzz_driver.seed = (long)(((unsigned long)time(NULL) ^ (unsigned long)getpid() << 16) & UINT32_MAX);
  ffuzz_driver_close_outputs();
  if (ffuzz_driver.verbosity > 0) ffuzz_driver_print("INFO: Seed: %ld\n", ffuzz_driver.seed);
  ffuzz_driver_show_modules();
}

/* As libFuzzer does it: all paths are files, or all are folders. */
static int run_like_libfuzzer(harness *test, const char *program) {
  int has_folders = !ffuzz_driver_path_count;
  for (int i = 0; i < ffuzz_driver_path_count; i++)
    has_folders |= access(ffuzz_driver_paths[i], F_OK) || is_folder(ffuzz_driver_paths[i]);
  for (int i = 0; has_folders && i < ffuzz_driver_path_count; i++) want_folder(ffuzz_driver_paths[i]);
  want_folder_of(ffuzz_driver.artifact_prefix);
  want_folder_of(ffuzz_driver.exact_artifact_path);
  begin();
  ffuzz_driver_watch();
  ffuzz_driver_limit();
  return has_folders ? ffuzz_driver_corpus(test) : run_files(test, program);
}

/* As AFL++'s driver does it. */
static int run_for_a_tool(harness *test) {
  int failed = 0;
  if (!ffuzz_driver.is_for_tool) ffuzz_driver_watch();
  ffuzz_driver_limit();
  if (ffuzz_driver.is_one_input) failed |= run_quietly(test, NULL, repetitions());
  for (int i = 0; i < ffuzz_driver_path_count; i++) failed |= run_quietly(test, ffuzz_driver_paths[i], repetitions());
  return failed;
}

HIDDEN int ffuzz_driver_by_hand(harness *test, const char *program) {
  int failed = 0;
  char before[4096];
  ffuzz_driver_seconds();
  for (unsigned int i = 0, count = ffuzz_replay_count(); i < count; i++)
    if (ffuzz_replay_path(before, sizeof before, i)) failed |= run_quietly(test, before, 1);
  if (ffuzz_driver.is_for_tool || ffuzz_driver.is_one_input)
    failed |= run_for_a_tool(test);
  else
    failed |= run_like_libfuzzer(test, program);
  ffuzz_driver_statistics();
  /* A fuzzer may read the map of a process without a fork server. */
  if (ffuzz_run_is_rejected()) ffuzz_run_is_over();
  return failed;
}
