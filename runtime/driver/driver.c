/* The driver behind -fsanitize=fuzzer, for programs that define LLVMFuzzerTestOneInput.
 *
 * Under a fuzzer it takes inputs one after the other in the same process; started by hand it runs
 * what it is given (files.c). */
#define _GNU_SOURCE
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver/driver.h"
#include "driver/engine.h"
#include "driver/files.h"
#include "driver/mutations.h"
#include "driver/options.h"
#include "forkserver.h"
#include "manual.h"
#include "persistent.h"
#include "process.h"
#include "testcase.h"

__attribute__((weak)) int LLVMFuzzerInitialize(int *argc, char ***argv);

__attribute__((weak)) extern void crosscall2(void); /* of Go, whose constructor starts threads */

int __afl_sharedmem_fuzzing = 1;

static void run_file(harness *test, const char *path, size_t most) {
  size_t size;
  uint8_t *data = ffuzz_driver_read(path, most, &size);
  if (data) ffuzz_driver_run_one(test, data, size);
  free(data);
}

/* Shared memory, else the file on the command line (@@), else standard input. */
static void run_loop(harness *test) {
  size_t most = ffuzz_driver.max_len > 0 ? (size_t)ffuzz_driver.max_len : SIZE_MAX;
  while (__afl_persistent_loop((unsigned int)ffuzz_driver.iterations)) {
    if (!__afl_fuzz_ptr && ffuzz_driver_path_count) {
      run_file(test, ffuzz_driver_paths[0], most);
    } else {
      size_t size = __ffuzz_testcase_len();
      ffuzz_driver_run_one(test, __ffuzz_testcase_buf(), size < most ? size : most);
    }
  }
}

static size_t threads(void) {
  size_t count = 0;
  DIR *tasks = opendir("/proc/self/task");
  for (struct dirent *task; tasks && (task = readdir(tasks));) count += task->d_name[0] != '.';
  if (tasks) closedir(tasks);
  return count;
}

/* Calls the harness's own startup. Children of the fork server have no threads that it leaves, and TestOneInput may wait
 * for one: then the program starts again, with the fork server before the startup, so that each child makes them. */
static void initialize(int *argc, char ***argv) {
  if (!LLVMFuzzerInitialize && !crosscall2) return;
  int is_deferred = getenv("__AFL_DEFER_FORKSRV") && !ffuzz_under_fuzzer && !getenv(FFUZZ_NOT_DEFERRED_ENV);
  size_t before = is_deferred && !crosscall2 ? threads() : 0, bytes = ((size_t)*argc + 1) * sizeof(char *);
  char **words = is_deferred ? malloc(bytes) : NULL;
  if (words) memcpy(words, *argv, bytes);
  if (LLVMFuzzerInitialize) LLVMFuzzerInitialize(argc, argv);
  if (words && threads() > before && !setenv(FFUZZ_NOT_DEFERRED_ENV, "1", 1)) {
    execv("/proc/self/exe", words);
    unsetenv(FFUZZ_NOT_DEFERRED_ENV);
  }
  free(words);
}

int LLVMFuzzerRunDriver(int *argc, char ***argv, harness *test) {
  ffuzz_driver_become_engine(*argc, *argv);
  initialize(argc, argv);
  ffuzz_driver_parse(*argc, *argv);
  ffuzz_driver_make_inputs();
  if (ffuzz_driver.standard_input) __afl_sharedmem_fuzzing = 0;
  __afl_manual_init();
  if (!ffuzz_under_fuzzer) return ffuzz_driver_by_hand(test, (*argv)[0]);
  run_loop(test);
  return 0;
}

/* For custom mutators that ask for "some ordinary mutation": one of the fuzzer's. Where none asks for inputs, one of a
 * few simple changes. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most) {
  static uint64_t state;
  size_t made = ffuzz_driver_ask_for_mutation(data, size, most);
  if (made) return made;
  if (!state) state = (uint64_t)ffuzz_driver.seed * 0xbf58476d1ce4e5b9u ^ 0x9e3779b97f4a7c15u;
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
