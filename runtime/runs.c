/* Runs ordered through the channel: a word in shared memory to wake each other, in place of pipes and
 * signals, and batches of test cases that the process judges by itself. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "runs.h"
#include "domains.h"
#include "edge-map.h"
#include "machine.h"
#include "memory.h"
#include "novelty.h"
#include "process.h"

#define LARGEST (1u << 20) /* AFL's limit for a test case */

HIDDEN struct ffuzz_runs *ffuzz_runs;
HIDDEN const struct ffuzz_input *ffuzz_input;
HIDDEN struct ffuzz_left *ffuzz_left;

static const struct ffuzz_case *cases;
static const uint8_t *arena;
static const uint32_t *bars;
static uint64_t *paths;
/* Set in the process that the fuzzer waits for. A child of the target's own finds it cleared. */
static int *ours;

HIDDEN void ffuzz_runs_attach(uint8_t *base, const struct ffuzz_channel *c) {
  ffuzz_runs = (void *)(base + FFUZZ_RUNS_OFFSET);
  cases = (void *)(base + FFUZZ_CASES_OFFSET);
  arena = base + c->arena_offset;
  bars = (void *)(base + c->bars_offset);
  paths = (void *)(base + FFUZZ_PATHS_OFFSET);
  if (c->offered & FFUZZ_FEATURE_SNAPSHOT) {
    ffuzz_input = (void *)(base + FFUZZ_INPUT_OFFSET);
    ffuzz_left = (void *)(base + FFUZZ_LEFT_OFFSET);
  }
  /* What runs are judged by is not for the program to change. */
  mprotect(base + c->virgin_offset, c->size - c->virgin_offset, PROT_READ);
  ffuzz_novelty_start(base + c->map_offset, base + c->virgin_offset, c->map_size);
}

/* Not by libc: between two runs of a snapshot errno is the program's. */
static void futex(uint32_t *word, int what, uint32_t value) {
  ffuzz_kernel(SYS_futex, (long)word, what, (long)value, 0, 0, 0);
}

/* Returns when the word is not `old` any more. */
HIDDEN void ffuzz_wait_word(uint32_t *word, uint32_t old) {
  while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == old) futex(word, FUTEX_WAIT, old);
}

/* Returns when the word is `wanted`. Any other value is the program's doing, and changes nothing. */
HIDDEN void ffuzz_await_word(uint32_t *word, uint32_t wanted) {
  uint32_t now;
  while ((now = __atomic_load_n(word, __ATOMIC_ACQUIRE)) != wanted) futex(word, FUTEX_WAIT, now);
}

static void wake_fuzzer(void) { futex(&ffuzz_runs->report, FUTEX_WAKE, 1); }

/* By the kernel: libc's may have a breakpoint, and the program may have one of its own. */
static uint32_t ticks(void) {
  struct timespec now = {0, 0};
  ffuzz_kernel(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&now, 0, 0, 0, 0);
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

/* `quietly`: the fuzzer waits for another child now, and looks at this one before its next batch. */
HIDDEN void ffuzz_report_lasting_end(uint32_t number, int status, int quietly) {
  ffuzz_runs->lasting_status = (uint32_t)status;
  if (!quietly) report(2);
  __atomic_store_n(&ffuzz_runs->lasting_ended, number, __ATOMIC_RELEASE);
  if (!quietly) wake_fuzzer();
}

/* Volatile: should the program die, these words say in which case. */
static void set(volatile uint32_t *word, uint32_t value) { *word = value; }

/* The table lies where the program can write. */
HIDDEN const uint8_t *ffuzz_case_bytes(uint32_t index, uint32_t *length) {
  const struct ffuzz_case *one = &cases[index % FFUZZ_MOST_CASES];
  uint32_t offset = one->offset % FFUZZ_ARENA, room = FFUZZ_ARENA - offset;
  *length = one->length < LARGEST ? one->length : LARGEST;
  if (*length > room) *length = room;
  return arena + offset;
}

HIDDEN void ffuzz_case_begins(uint32_t index) {
  if (__afl_fuzz_ptr) {
    uint32_t length, before = *__afl_fuzz_len < LARGEST ? *__afl_fuzz_len : LARGEST;
    const uint8_t *bytes = ffuzz_case_bytes(index, &length);
    memcpy(__afl_fuzz_ptr, bytes, length);
    /* A program that reads past the end finds there what it finds when it is started by hand. */
    if (before > length) memset(__afl_fuzz_ptr + length, 0, before - length);
    *__afl_fuzz_len = length;
  }
  set(&ffuzz_runs->started, index + 1);
}

static int begin(void) {
  ours = ffuzz_pages(FFUZZ_PAGE);
  madvise(ours, FFUZZ_PAGE, MADV_WIPEONFORK);
  *ours = 1;
  ffuzz_run_begins();
  ffuzz_iteration++;
  ffuzz_case_begins(0);
  return 1;
}

HIDDEN enum ffuzz_shown ffuzz_case_shows(void) {
  if (ffuzz_edges_are_new() || (ffuzz_runs->watch && ffuzz_keys_are_new(bars))) return FFUZZ_SHOWN_NEWS;
  return ffuzz_runs->each ? FFUZZ_SHOWN_EACH : FFUZZ_SHOWN_NOT;
}

/* Hands the last case over, or nothing, and waits for the next batch. */
static void hand_over(enum ffuzz_shown shown) {
  uint32_t now = __atomic_load_n(&ffuzz_runs->go, __ATOMIC_RELAXED);
  set(&ffuzz_runs->shown, (uint32_t)shown);
  ffuzz_runs->stopped = ticks();
  report(1);
  wake_fuzzer();
  ffuzz_wait_word(&ffuzz_runs->go, now);
  ffuzz_note_start();
}

HIDDEN uint32_t ffuzz_case_ends(enum ffuzz_shown shown) {
  uint32_t done = ffuzz_runs->finished + 1;
  if (!shown) {
    uint32_t wanted = ffuzz_runs->paths;
    if (wanted) paths[(done - 1) % FFUZZ_MOST_CASES] = ffuzz_edges_hash(wanted == FFUZZ_PATHS_COUNTS);
    ffuzz_edges_forget();
    ffuzz_domains_reset();
  }
  set(&ffuzz_runs->finished, done);
  if (!shown && done < ffuzz_runs->count) return done;
  hand_over(shown);
  return 0;
}

/* True if there is one more test case. The last one of a process is left under way: what is seen of
 * it is reported when the process has ended. */
HIDDEN int ffuzz_next_case(unsigned int most) {
  static unsigned int left;
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
  uint32_t next = ffuzz_case_ends(ffuzz_case_shows());
  ffuzz_run_goes_on();
  ffuzz_iteration++;
  ffuzz_case_begins(next);
  return 1;
}
