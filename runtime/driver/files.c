/* A harness that is started by hand: files, folders and standard input, one input after the other. */
#define _GNU_SOURCE
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "driver/files.h"
#include "driver/crash.h"
#include "driver/options.h"
#include "edge-map.h"
#include "replay.h"

static unsigned long executed;
static double slowest;

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* `times` with the name of the input at hand, should it crash. */
static void run_named(harness *test, const char *name, const uint8_t *data, size_t size, long times, int in_folder) {
  for (; times > 0; times--) {
    double begun = seconds();
    ffuzz_driver_input(name, data, size, in_folder);
    ffuzz_driver_run_one(test, data, size);
    ffuzz_driver_check_limits();
    ffuzz_driver_input(NULL, NULL, 0, 0);
    double spent = seconds() - begun;
    if (spent > slowest) slowest = spent;
    executed++;
  }
}

static int run_file(harness *test, const char *path, int in_folder) {
  size_t size, most = in_folder && ffuzz_driver.max_len > 0 ? (size_t)ffuzz_driver.max_len : SIZE_MAX;
  uint8_t *data = ffuzz_driver_read(path, most, &size);
  if (!data) return 1;
  run_named(test, path, data, size, in_folder || ffuzz_driver.runs < 1 ? 1 : ffuzz_driver.runs, in_folder);
  free(data);
  return 0;
}

/* And the folders in it, as libFuzzer does; names with a dot in front are notes of fuzzers. */
static int run_folder(harness *test, const char *path) {
  struct dirent **entries;
  int failed = 0, count = scandir(path, &entries, NULL, alphasort);
  if (count < 0) {
    perror(path);
    return 1;
  }
  for (int i = 0; i < count; i++) {
    char *inside;
    struct stat info;
    if (entries[i]->d_name[0] != '.' && asprintf(&inside, "%s/%s", path, entries[i]->d_name) > 0) {
      if (lstat(inside, &info) == 0 && S_ISDIR(info.st_mode))
        failed |= run_folder(test, inside);
      else if (stat(inside, &info) == 0 && S_ISREG(info.st_mode))
        failed |= run_file(test, inside, 1);
      free(inside);
    }
    free(entries[i]);
  }
  free(entries);
  return failed;
}

/* An input comes from a file or a pipe; a terminal, or nothing, is nobody's input without `-`. */
static int run_standard_input(harness *test, const char *program) {
  struct stat info;
  size_t size;
  if (!ffuzz_driver.standard_input && (fstat(0, &info) || S_ISCHR(info.st_mode))) {
    ffuzz_driver_usage(2, program);
    return 1;
  }
  uint8_t *data = ffuzz_driver_read(NULL, SIZE_MAX, &size);
  if (!data) return 1;
  run_named(test, "of standard input", data, size, ffuzz_driver.runs < 1 ? 1 : ffuzz_driver.runs, 0);
  free(data);
  return 0;
}

static void print_statistics(double begun) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  double spent = seconds() - begun;
  fprintf(stderr,
          "stat::number_of_executed_units: %lu\nstat::average_exec_per_sec:     %lu\n"
          "stat::new_units_added:          0\nstat::slowest_unit_time_sec:    %lu\n"
          "stat::peak_rss_mb:              %ld\n",
          executed, spent > 1 ? (unsigned long)((double)executed / spent) : executed, (unsigned long)slowest,
          usage.ru_maxrss >> 10);
}

HIDDEN int ffuzz_driver_by_hand(harness *test, const char *program) {
  int failed = 0, folders = 0;
  double begun = seconds();
  char before[4096];
  ffuzz_driver_watch();
  for (unsigned int i = 0, count = ffuzz_replay_count(); i < count; i++)
    if (ffuzz_replay_path(before, sizeof before, i)) failed |= run_file(test, before, 0);
  if (ffuzz_driver.standard_input || !ffuzz_driver_path_count) failed |= run_standard_input(test, program);
  for (int i = 0; i < ffuzz_driver_path_count; i++) {
    const char *path = ffuzz_driver_paths[i];
    struct stat info;
    int is_folder = stat(path, &info) == 0 && S_ISDIR(info.st_mode);
    failed |= is_folder ? run_folder(test, path) : run_file(test, path, 0);
    folders += is_folder;
  }
  if (folders && ffuzz_driver.verbosity > 0)
    fprintf(stderr,
            "[*] INFO: %lu inputs were run, each once. To fuzz: ffuzz -i FOLDER -o OUT -- %s\n", executed, program);
  if (ffuzz_driver.print_final_stats) print_statistics(begun);
  /* A fuzzer may read the map of a process without a fork server. */
  if (ffuzz_run_is_rejected()) ffuzz_run_is_over();
  return failed;
}
