/* Makes inputs by the harness's own functions, in a process of its own. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "driver/mutations.h"

__attribute__((weak)) size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned int seed);
__attribute__((weak)) size_t LLVMFuzzerCustomCrossOver(const uint8_t *data, size_t size, const uint8_t *other,
                                                       size_t other_size, uint8_t *out, size_t most,
                                                       unsigned int seed);

static struct ffuzz_mutations *shared;
static uint32_t seen;

static void futex(uint32_t *word, int what, uint32_t value) {
  syscall(SYS_futex, word, what, value, NULL, NULL, 0);
}

static void wait_for_order(void) {
  uint32_t now;
  while ((now = __atomic_load_n(&shared->ordered, __ATOMIC_ACQUIRE)) == seen) futex(&shared->ordered, FUTEX_WAIT, seen);
  seen = now;
}

static void report(uint32_t what, size_t size, size_t most) {
  shared->report = what;
  shared->size = (uint32_t)size;
  shared->wanted = (uint32_t)most;
  __atomic_fetch_add(&shared->answered, 1, __ATOMIC_RELEASE);
  futex(&shared->answered, FUTEX_WAKE, 1);
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* A block of exactly `most` bytes, so that a sanitizer sees a write behind its end. */
static uint8_t *block_of(const uint8_t *bytes, size_t size, size_t most) {
  uint8_t *block = malloc(most ? most : 1);
  if (block && size) memcpy(block, bytes, size);
  return block;
}

/* A result that is too large is none: libFuzzer tries again, too. */
static void make(void) {
  size_t most = least(shared->most, FFUZZ_LONGEST_INPUT), made = 0;
  size_t size = least(least(shared->first_size, FFUZZ_LONGEST_INPUT), most);
  size_t other_size = least(shared->second_size, FFUZZ_LONGEST_INPUT);
  unsigned int seed = shared->seed;
  uint8_t *result = NULL;
  if (shared->order == FFUZZ_ORDER_CROSS && LLVMFuzzerCustomCrossOver) {
    uint8_t *data = block_of(shared->first, size, size), *other = block_of(shared->second, other_size, other_size);
    result = block_of(NULL, 0, most);
    if (data && other && result) made = LLVMFuzzerCustomCrossOver(data, size, other, other_size, result, most, seed);
    free(data);
    free(other);
  } else if (shared->order == FFUZZ_ORDER_MUTATE && LLVMFuzzerCustomMutator) {
    result = block_of(shared->first, size, most);
    if (result) made = LLVMFuzzerCustomMutator(result, size, most, seed);
  }
  if (made > most) made = 0;
  if (made) memcpy(shared->first, result, made);
  free(result);
  report(FFUZZ_REPORT_MADE, made, 0);
}

HIDDEN size_t ffuzz_driver_ask_for_mutation(uint8_t *data, size_t size, size_t most) {
  if (!shared || size > FFUZZ_LONGEST_INPUT) return 0;
  memcpy(shared->second, data, size);
  report(FFUZZ_REPORT_WANTS, size, least(most, FFUZZ_LONGEST_INPUT));
  wait_for_order();
  size_t made = least(shared->second_size, FFUZZ_LONGEST_INPUT);
  if (shared->order != FFUZZ_ORDER_GO_ON || made > most) return 0;
  memcpy(data, shared->second, made);
  return made;
}

HIDDEN void ffuzz_driver_make_inputs(void) {
  const char *text = getenv(FFUZZ_MUTATOR_ENV);
  if (!text) return;
  void *at = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, atoi(text), 0);
  if (at == MAP_FAILED) exit(1);
  shared = at;
  if (shared->magic != FFUZZ_MUTATIONS_MAGIC || shared->version != FFUZZ_MUTATIONS_VERSION) exit(1);
  seen = __atomic_load_n(&shared->ordered, __ATOMIC_ACQUIRE);
  report(FFUZZ_REPORT_READY, 0, 0);
  for (;;) {
    wait_for_order();
    make();
  }
}
