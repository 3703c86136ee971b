/* See corpus.h. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "driver/corpus.h"
#include "driver/crash.h"
#include "driver/limits.h"
#include "driver/options.h"
#include "driver/report.h"
#include "edge-map.h"
#include "modules.h"

/* Inputs are cut to the longest file, within these. */
#define LEAST_LENGTH 4096u
#define MOST_LENGTH (1u << 20)
/* A status line comes at powers of two, once this many seconds are over. */
#define QUIET_SECONDS 2

struct file {
  char *path;
  size_t size;
};

static struct file *files;
static size_t file_count, file_room;
/* Buckets of hit counts that were seen, one byte for each counter; modules lie behind one another. */
static uint8_t *seen;
static unsigned long edges, features, corpus_inputs, corpus_bytes, longest_kept;

static int is_verbose(void) { return ffuzz_driver.verbosity > 0; }

static void add(char *path, size_t size) {
  if (file_count == file_room) {
    file_room = file_room ? 2 * file_room : 256;
    struct file *more = realloc(files, file_room * sizeof *files);
    if (!more) exit(1);
    files = more;
  }
  files[file_count++] = (struct file){path, size};
}

/* And the folders in it; names with a dot in front are notes of fuzzers. Empty files are left out: the empty input runs
 * first anyway. */
static void collect(const char *path) {
  DIR *folder = opendir(path);
  struct stat info;
  if (!folder) {
    ffuzz_driver_print("ERROR: cannot read the folder %s: %s\n", path, strerror(errno));
    exit(1);
  }
  for (struct dirent *entry; (entry = readdir(folder));) {
    char *inside;
    int is_folder = entry->d_type == DT_DIR;
    if (entry->d_name[0] == '.' || fstatat(dirfd(folder), entry->d_name, &info, 0)) continue;
    if (entry->d_type == DT_UNKNOWN) is_folder = S_ISDIR(info.st_mode);
    if (!is_folder && (!S_ISREG(info.st_mode) || !info.st_size)) continue;
    if (asprintf(&inside, "%s%s%s", path, path[strlen(path) - 1] == '/' ? "" : "/", entry->d_name) < 0) exit(1);
    if (is_folder)
      collect(inside);
    else
      add(inside, (size_t)info.st_size);
    if (is_folder) free(inside);
  }
  closedir(folder);
}

/* Small files first, as libFuzzer runs them. */
static int by_size(const void *a, const void *b) {
  const struct file *left = a, *right = b;
  if (left->size != right->size) return left->size < right->size ? -1 : 1;
  return strcmp(left->path, right->path);
}

static void show(const char *where, unsigned long limit) {
  double spent = ffuzz_driver_seconds();
  char covered[128] = "", kept[128] = "", lim[64] = "";
  if (!is_verbose()) return;
  if (edges) snprintf(covered, sizeof covered, " cov: %lu ft: %lu", edges, features);
  if (corpus_inputs) {
    const char *unit = corpus_bytes < 1 << 10 ? "b" : corpus_bytes < 1 << 20 ? "Kb" : "Mb";
    unsigned long amount = corpus_bytes >> (corpus_bytes < 1 << 10 ? 0 : corpus_bytes < 1 << 20 ? 10 : 20);
    snprintf(kept, sizeof kept, " corp: %lu/%lu%s", corpus_inputs, amount, unit);
  }
  if (limit) snprintf(lim, sizeof lim, " lim: %lu", limit);
  ffuzz_driver_print("#%lu\t%-6s%s%s%s exec/s: %lu rss: %ldMb\n", ffuzz_driver_runs, where, covered, kept, lim,
                     spent >= 1 ? (unsigned long)((double)ffuzz_driver_runs / spent) : 0, ffuzz_driver_peak_mb());
}

static unsigned bucket(uint8_t hits) {
  return hits >= 128 ? 128 : hits >= 32 ? 64 : hits >= 16 ? 32 : hits >= 8 ? 16 : hits >= 4 ? 8 : hits == 3 ? 4 : hits;
}

/* One block of eight counters, as AFL's classes. */
static int look_at(const uint8_t *hits, uint8_t *known, size_t count, int is_edge) {
  int found = 0;
  for (size_t i = 0; i < count; i++) {
    unsigned now = bucket(hits[i]);
    if (!(now & ~known[i])) continue;
    edges += is_edge && !known[i];
    features++;
    known[i] |= (uint8_t)now;
    found = 1;
  }
  return found;
}

/* Whether the run that has just ended shows something new. */
static int is_new(void) {
  int found = 0;
  uint8_t *known = seen;
  for (uint32_t i = 0; i < ffuzz_module_count; i++) {
    const struct module *m = &ffuzz_modules[i];
    for (uint64_t at = 0; at < m->count; at += 8) {
      uint64_t eight = 0, left = m->count - at < 8 ? m->count - at : 8;
      memcpy(&eight, m->start + at, left);
      if (eight) found |= look_at(m->start + at, known + at, left, !m->has_no_places);
    }
    known += m->count;
  }
  return found;
}

static void forget(void) {
  for (uint32_t i = 0; i < ffuzz_module_count; i++) memset(ffuzz_modules[i].start, 0, ffuzz_modules[i].count);
}

static void run(harness *test, const uint8_t *data, size_t size) {
  forget();
  double spent = ffuzz_driver_run(test, data, size);
  unsigned long number = ffuzz_driver_runs;
  if (!ffuzz_run_is_rejected() && is_new()) {
    corpus_inputs++, corpus_bytes += size;
    if (size > longest_kept) longest_kept = size;
  }
  if (!(number & (number - 1)) && ffuzz_driver_seconds() >= QUIET_SECONDS) show("pulse", 0);
  static double slowest_told;
  if (spent > 1.1 * slowest_told && spent >= (double)ffuzz_driver.report_slow_units) {
    slowest_told = spent;
    ffuzz_driver_print("Slowest unit: %ld s:\n", (long)spent);
    ffuzz_driver_save("slow-unit", data, size);
  }
  ffuzz_driver_look_for_leaks(test, data, size);
}

/* A file that cannot be read is skipped, as by libFuzzer. */
static void run_file(harness *test, const struct file *input, uint8_t *buffer, size_t most) {
  int file = open(input->path, O_RDONLY | O_CLOEXEC);
  size_t size = 0;
  ssize_t n = -1;
  while (file >= 0 && size < most && (n = read(file, buffer + size, most - size)) > 0) size += (size_t)n;
  if (file >= 0) close(file);
  if (n >= 0 && size) run(test, buffer, size);
}

HIDDEN void ffuzz_driver_show_modules(void) {
  char parts[4096] = "", places[4096] = "";
  unsigned long modules = 0, tables = 0, all = 0, all_places = 0;
  size_t used = 0, used_places = 0;
  if (!is_verbose()) return;
  for (uint32_t i = 0; i < ffuzz_module_count; i++) {
    const struct module *m = &ffuzz_modules[i];
    unsigned long count = (unsigned long)m->count;
    if (m->has_no_places) continue;
    modules++, all += count;
    if (used < sizeof parts / 2)
      used += (size_t)snprintf(parts + used, sizeof parts - used, "%lu [%p, %p), ", count, (void *)m->start,
                               (void *)(m->start + count));
    if (!m->pcs) continue;
    tables++, all_places += count;
    if (used_places < sizeof places / 2)
      used_places += (size_t)snprintf(places + used_places, sizeof places - used_places, "%lu [%p,%p), ", count,
                                      (const void *)m->pcs, (const void *)m->pcs_end);
  }
  if (modules) ffuzz_driver_print("INFO: Loaded %lu modules   (%lu inline 8-bit counters): %s\n", modules, all, parts);
  if (tables) ffuzz_driver_print("INFO: Loaded %lu PC tables (%lu PCs): %s\n", tables, all_places, places);
}

static void collect_all(void) {
  struct stat info;
  for (int i = 0; i < ffuzz_driver_path_count; i++) {
    const char *path = ffuzz_driver_paths[i];
    size_t before = file_count;
    if (stat(path, &info) || !S_ISDIR(info.st_mode)) {
      ffuzz_driver_print("Not a directory: %s; exiting\n", path);
      exit(1);
    }
    collect(path);
    ffuzz_driver_print("INFO: %8zu files found in %s\n", file_count - before, path);
  }
  if (file_count) qsort(files, file_count, sizeof *files, by_size);
}

/* The length that inputs are cut to. */
static size_t describe(void) {
  size_t largest = file_count ? files[file_count - 1].size : 0, total = 0;
  size_t most = largest < LEAST_LENGTH ? LEAST_LENGTH : largest > MOST_LENGTH ? MOST_LENGTH : largest;
  for (size_t i = 0; i < file_count; i++) total += files[i].size;
  if (ffuzz_driver.max_len > 0)
    most = (size_t)ffuzz_driver.max_len;
  else
    ffuzz_driver_print("INFO: -max_len is not provided; libFuzzer will not generate inputs larger than %zu bytes\n", most);
  if (file_count)
    ffuzz_driver_print("INFO: seed corpus: files: %zu min: %zub max: %zub total: %zub rss: %ldMb\n", file_count,
                       files[0].size, largest, total, ffuzz_driver_peak_mb());
  else
    ffuzz_driver_print("INFO: A corpus is not provided, starting from an empty corpus\n");
  return most < largest || !file_count ? most : largest;
}

HIDDEN int ffuzz_driver_corpus(harness *test) {
  size_t counters = 1;
  collect_all();
  size_t most = describe();
  for (uint32_t i = 0; i < ffuzz_module_count; i++) counters += ffuzz_modules[i].count;
  seen = calloc(counters, 1);
  uint8_t *buffer = malloc(most);
  if (!seen || !buffer) return 1;
  ffuzz_driver_saves = 1;
  ffuzz_driver_run(test, (const uint8_t *)"", 0);
  if (!file_count) run(test, (const uint8_t *)"\n", 1);
  for (size_t i = 0; i < file_count && !ffuzz_driver_is_to_end(); i++) run_file(test, &files[i], buffer, most);
  free(buffer); /* for LeakSanitizer */
  if (is_verbose() && !corpus_inputs)
    ffuzz_driver_print("WARNING: no interesting inputs were found so far. Is the code instrumented for coverage?\n"
                       "This may also happen if the target rejected all inputs we tried so far\n");
  show("INITED", 0);
  show("DONE", longest_kept > 4 ? longest_kept : 4);
  if (is_verbose())
    ffuzz_driver_print("Done %lu runs in %lu second(s)\n", ffuzz_driver_runs, (unsigned long)ffuzz_driver_seconds());
  return 0;
}
