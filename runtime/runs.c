/* Runs ordered through the channel: a word in shared memory to wake each other, in place of pipes and
 * signals, and batches of test cases that the process judges by itself. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "ffuzz-rt.h"

#define LARGEST (1u << 20) /* AFL's limit for a test case */

HIDDEN struct ffuzz_runs *ffuzz_runs;

static const struct ffuzz_case *cases;
static const uint8_t *arena;
static const uint32_t *bars;
/* Set in the process that the fuzzer waits for. A child of the target's own finds it cleared. */
static int *ours;

HIDDEN void ffuzz_runs_attach(uint8_t *base, const struct ffuzz_channel *c) {
  ffuzz_runs = (void *)(base + FFUZZ_RUNS_OFFSET);
  cases = (void *)(base + FFUZZ_CASES_OFFSET);
  arena = base + c->arena_offset;
  bars = (void *)(base + c->bars_offset);
  /* What runs are judged by is not for the program to change. */
  mprotect(base + c->virgin_offset, c->size - c->virgin_offset, PROT_READ);
  ffuzz_novelty_start(base + c->map_offset, base + c->virgin_offset, c->map_size);
}

/* Returns when the word is not `old` any more. */
HIDDEN void ffuzz_wait_word(uint32_t *word, uint32_t old) {
  while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == old) syscall(SYS_futex, word, FUTEX_WAIT, old, NULL, NULL, 0);
}

static void wake_fuzzer(void) { syscall(SYS_futex, &ffuzz_runs->report, FUTEX_WAKE, 1, NULL, NULL, 0); }

static uint32_t ticks(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint32_t)(((uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec) / FFUZZ_TICK);
}

HIDDEN void ffuzz_note_start(void) { ffuzz_runs->began = ticks(); }

static void report(uint32_t what) { __atomic_store_n(&ffuzz_runs->report, what, __ATOMIC_RELEASE); }

/* `ended` comes last: once the fuzzer has seen it the next batch may begin, and `report` is its own. */
HIDDEN void ffuzz_report_end(uint32_t number, int status) {
  ffuzz_runs->status = (uint32_t)status;
  ffuzz_runs->stopped = ticks();
  report(2);
  __atomic_store_n(&ffuzz_runs->ended, number, __ATOMIC_RELEASE);
  wake_fuzzer();
}

/* Volatile: should the program die, these words say in which case. */
static void set(volatile uint32_t *word, uint32_t value) { *word = value; }

static void start(uint32_t index) {
  if (__afl_fuzz_ptr) {
    const struct ffuzz_case *next = &cases[index];
    uint32_t length = next->length < LARGEST ? next->length : LARGEST;
    memcpy(__afl_fuzz_ptr, arena + next->offset, length);
    *__afl_fuzz_len = length;
  }
  ffuzz_iteration++;
  set(&ffuzz_runs->started, index + 1);
}

static int begin(void) {
  ours = ffuzz_pages(FFUZZ_PAGE);
  madvise(ours, FFUZZ_PAGE, MADV_WIPEONFORK);
  *ours = 1;
  ffuzz_run_begins();
  start(0);
  return 1;
}

static int shows_news(void) {
  return ffuzz_runs->each || ffuzz_edges_are_new() || (ffuzz_runs->watch && ffuzz_keys_are_new(bars));
}

/* Hands the last case over, or nothing, and waits for the next batch. */
static void hand_over(int shown) {
  uint32_t now = __atomic_load_n(&ffuzz_runs->go, __ATOMIC_RELAXED);
  set(&ffuzz_runs->shown, (uint32_t)shown);
  ffuzz_runs->stopped = ticks();
  report(1);
  wake_fuzzer();
  ffuzz_wait_word(&ffuzz_runs->go, now);
  ffuzz_note_start();
}

/* True if there is one more test case. The last one of a process is left under way: what is seen of
 * it is reported when the process has ended. */
HIDDEN int ffuzz_next_case(unsigned int most) {
  static unsigned int left;
  static uint32_t done; /* of this batch */
  if (!ours) {
    left = most;
    return begin();
  }
  if (!*ours) return 0;
  ffuzz_run_ends();
  if (left <= 1) {
    ffuzz_run_is_over();
    return 0;
  }
  left--;
  int shown = shows_news();
  if (!shown) {
    ffuzz_edges_forget();
    ffuzz_domains_reset();
  }
  set(&ffuzz_runs->finished, ++done);
  if (shown || done >= ffuzz_runs->count) {
    hand_over(shown);
    done = 0;
  }
  ffuzz_run_goes_on();
  start(done);
  return 1;
}
