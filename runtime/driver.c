/* The driver behind -fsanitize=fuzzer: main() for programs that define LLVMFuzzerTestOneInput.
 *
 * Under a fuzzer it takes inputs one after the other in the same process; started by hand it runs
 * each file it is given (all files of a folder), or standard input; -runs=N each file N times. */
#define _GNU_SOURCE
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ffuzz-rt.h"

/* A new process after so many inputs: leaks and worn-out state end there, and at 100 us or so for
 * the fork against 1 us for the shortest input its cost stays below 0.1 %. */
#define INPUTS_PER_PROCESS 100000u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
__attribute__((weak)) int LLVMFuzzerInitialize(int *argc, char ***argv);

int __afl_persistent_loop(unsigned int most);
void __afl_manual_init(void);
unsigned char *__ffuzz_testcase_buf(void);
unsigned int __ffuzz_testcase_len(void);

int __afl_sharedmem_fuzzing = 1;

typedef int (*harness)(const uint8_t *, size_t);

/* On a block of exactly its size, so that a sanitizer sees a read behind the end. */
static void run_one(harness test, const uint8_t *data, size_t size) {
  uint8_t *copy = malloc(size ? size : 1);
  if (!copy) return;
  memcpy(copy, data, size);
  test(copy, size);
  free(copy);
}

static int read_file(const char *path, uint8_t **data, size_t *size) {
  FILE *file = fopen(path, "rb");
  if (!file) return 0;
  size_t room = 65536;
  *size = 0;
  *data = malloc(room);
  while (*data) {
    size_t n = fread(*data + *size, 1, room - *size, file);
    if (n == 0) break;
    *size += n;
    if (*size == room) *data = realloc(*data, room *= 2);
  }
  fclose(file);
  return *data != NULL;
}

static unsigned long runs = 1;

static int run_file(harness test, const char *path) {
  uint8_t *data;
  size_t size;
  if (!read_file(path, &data, &size)) {
    perror(path);
    return 1;
  }
  for (unsigned long i = 0; i < runs; i++) run_one(test, data, size);
  free(data);
  return 0;
}

static int run_folder(harness test, const char *path) {
  struct dirent **entries;
  int failed = 0, count = scandir(path, &entries, NULL, alphasort);
  for (int i = 0; i < count; i++) {
    char inside[4096];
    struct stat info;
    snprintf(inside, sizeof inside, "%s/%s", path, entries[i]->d_name);
    if (stat(inside, &info) == 0 && S_ISREG(info.st_mode)) failed |= run_file(test, inside);
    free(entries[i]);
  }
  if (count >= 0) free(entries);
  return failed | (count < 0);
}

static const char *first_file(int argc, char **argv) {
  for (int i = 1; i < argc; i++)
    if (argv[i][0] != '-') return argv[i];
  return NULL;
}

/* Shared memory, else the file on the command line (@@), else standard input. */
static void run_loop(harness test, int argc, char **argv) {
  const char *path = first_file(argc, argv);
  while (__afl_persistent_loop(INPUTS_PER_PROCESS)) {
    if (!__afl_fuzz_ptr && path)
      run_file(test, path);
    else
      run_one(test, __ffuzz_testcase_buf(), __ffuzz_testcase_len());
  }
}

int LLVMFuzzerRunDriver(int *argc, char ***argv, harness test) {
  if (LLVMFuzzerInitialize) LLVMFuzzerInitialize(argc, argv);
  __afl_manual_init();
  if (ffuzz_under_fuzzer || !first_file(*argc, *argv)) {
    run_loop(test, *argc, *argv);
    return 0;
  }
  int failed = 0;
  char before[4096];
  for (unsigned int i = 0, count = ffuzz_replay_count(); i < count; i++)
    if (ffuzz_replay_path(before, sizeof before, i)) failed |= run_file(test, before);
  for (int i = 1; i < *argc; i++)
    if (!strncmp((*argv)[i], "-runs=", 6)) runs = strtoul((*argv)[i] + 6, NULL, 10);
  for (int i = 1; i < *argc; i++) {
    struct stat info;
    const char *path = (*argv)[i];
    if (path[0] == '-') continue; /* an option for libFuzzer */
    failed |= stat(path, &info) == 0 && S_ISDIR(info.st_mode) ? run_folder(test, path) : run_file(test, path);
  }
  return failed;
}

/* For custom mutators that ask for "some ordinary mutation". */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most) {
  static uint64_t state = 0x9e3779b97f4a7c15u;
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  uint32_t choice = (uint32_t)(state >> 60), value = (uint32_t)(state >> 40) & 0xff;
  if (size == 0 || (choice < 3 && size < most)) { /* insert */
    if (size >= most) return size;
    size_t at = (size_t)(state % (size + 1));
    memmove(data + at + 1, data + at, size - at);
    data[at] = (uint8_t)value;
    return size + 1;
  }
  size_t at = (size_t)(state % size);
  if (choice < 5 && size > 1) { /* remove */
    memmove(data + at, data + at + 1, size - at - 1);
    return size - 1;
  }
  if (choice < 10)
    data[at] ^= (uint8_t)(1u << (value & 7));
  else
    data[at] = (uint8_t)value;
  return size;
}
