/* A snapshot: an ordinary program is put back to where it was before its run, in place of being forked.
 * The rules for this code are in snapshot.h. */
#define _GNU_SOURCE
#include "snapshot.h"

#if FFUZZ_HAS_SNAPSHOTS
#include <fcntl.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Blocks up to that are usual: the buffer of a stream is one. */
#define USUAL_BLOCK 5000u

HIDDEN struct saved *ffuzz_saved;
HIDDEN struct changes *ffuzz_changes;

HIDDEN void ffuzz_give_up(enum ffuzz_why why, long detail) {
  /* What stands in the way may have come with the prologue. */
  if (why > FFUZZ_WHY_RUN && ffuzz_saved && ffuzz_saved->prologue) why = FFUZZ_WHY_PROLOGUE, detail = 0;
  ffuzz_runs->detail = (uint32_t)detail;
  __atomic_store_n(&ffuzz_runs->why, (uint32_t)why, __ATOMIC_RELEASE);
  for (;;) CALL(exit_group, 0);
}

static void *control_stack(void) { return ffuzz_changes->control_stack + STACK_BYTES; }

/* The file is opened for each batch: a run by fork in between has replaced it. */
static void open_input(void) {
  long file = CALL(openat, AT_FDCWD, ffuzz_input->path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) ffuzz_give_up(FFUZZ_WHY_INPUT, -file);
  CALL(dup3, file, OWN_INPUT, O_CLOEXEC);
  CALL(close, file);
}

static void put_input(uint32_t index) {
  uint32_t length, kind = ffuzz_input->kind;
  const uint8_t *bytes = ffuzz_case_bytes(index, &length);
  if (kind == FFUZZ_INPUT_NONE) return;
  if (kind == FFUZZ_INPUT_FILE && (index == 0 || ffuzz_changes->what & CHANGED_INPUT)) open_input();
  long written = CALL(pwrite64, OWN_INPUT, bytes, length, 0);
  if (written != (long)length) ffuzz_give_up(FFUZZ_WHY_INPUT, written < 0 ? -written : 0);
  /* Always: the run before may have made it longer. */
  long error = CALL(ftruncate, OWN_INPUT, length);
  if (error) ffuzz_give_up(FFUZZ_WHY_INPUT, -error);
  if (kind == FFUZZ_INPUT_STDIN) CALL(lseek, OWN_INPUT, 0, SEEK_SET);
}

static void begin_run(uint32_t index) {
  put_input(index);
  ffuzz_case_begins(index);
  ffuzz_changes->what = 0;
  ffuzz_changes->is_running = 1;
  CALL(rt_sigprocmask, SIG_SETMASK, &ffuzz_saved->signal_mask, NULL, sizeof(uint64_t));
  ffuzz_context_load(&ffuzz_saved->start);
}

/* The fuzzer wants to see such an end for itself. */
static void end_if_crash(int status) {
  uint32_t code = (uint32_t)status & 255;
  if (ffuzz_runs->crash_codes[code / 32] >> code % 32 & 1) CALL(exit_group, status);
}

/* Returns what was blocked until now. */
static uint64_t block_signals(void) {
  uint64_t all = ~(uint64_t)0, before = 0;
  CALL(rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof all);
  return before;
}

/* A signal that the run has blocked, or that a timer of its own has sent, would reach the next run. */
static void refuse_pending(uint64_t blocked) {
  uint64_t pending = 0;
  if (blocked == ffuzz_saved->signal_mask && !(ffuzz_changes->what & CHANGED_TIMERS)) return;
  CALL(rt_sigpending, &pending, sizeof pending);
  if (pending) ffuzz_give_up(FFUZZ_WHY_SIGNAL, __builtin_ctzll(pending) + 1);
}

/* From the end of a run to the beginning of the next. */
static void between_runs(void) {
  uint64_t blocked = block_signals();
  end_if_crash(ffuzz_changes->status);
  ffuzz_run_ends();
  ffuzz_changes_undo();
  refuse_pending(blocked);
  ffuzz_memory_put_back();
  uint32_t next = ffuzz_case_ends();
  ffuzz_edges_load(ffuzz_saved->edges, ffuzz_saved->edge_count);
  ffuzz_keys_load(ffuzz_saved->keys, ffuzz_saved->key_count);
  begin_run(next);
}

HIDDEN int ffuzz_is_put_back(void) { return ffuzz_changes && ffuzz_changes->is_running; }

HIDDEN void ffuzz_snapshot_run_ends(int status) {
  struct changes *changes = ffuzz_changes;
  changes->is_running = 0;
  changes->status = status;
  ffuzz_go_on_stack(control_stack(), between_runs);
}

static void save_maps(void) {
  struct saved *saved = ffuzz_saved;
  saved->edge_count = ffuzz_edges_count();
  saved->key_count = ffuzz_keys_count();
  if (saved->key_count == UINT32_MAX) ffuzz_give_up(FFUZZ_WHY_KEYS, 0);
  saved->edges = ffuzz_own_memory(saved->edge_count * sizeof *saved->edges);
  saved->keys = ffuzz_own_memory(saved->key_count * sizeof *saved->keys);
  ffuzz_edges_save(saved->edges);
  ffuzz_keys_save(saved->keys);
}

static void take(void) {
  ffuzz_saved->signal_mask = block_signals();
  save_maps();
  ffuzz_changes_start();
  ffuzz_memory_save();
  ffuzz_filter_start();
  ffuzz_memory_seal();
  ffuzz_runs->prologue_calls = ffuzz_saved->prologue;
  begin_run(0);
}

HIDDEN void ffuzz_snapshot_take(void) { ffuzz_context_save(&ffuzz_saved->start, control_stack(), take); }

extern void __asan_get_shadow_mapping(size_t *, size_t *) __attribute__((weak));

static void touch_heap(size_t size) {
  void *volatile block = malloc(size);
  free(block);
}

/* The heap's first pages are there before the first run: what is put back is cheaper than what comes and goes.
 * Of libc's no more than it takes at first, so that a write far behind a block is still one behind the heap;
 * and it does not end before where it ends now. A sanitizer maps memory when a class of sizes is first asked for:
 * each class that a run asks for first costs traps and faults, each that is there costs scans, so the usual ones
 * are there. */
static void begin_heap(void) {
  if (!mallopt(M_TRIM_THRESHOLD, INT32_MAX) && !&__asan_get_shadow_mapping) return;
  touch_heap(1);
  if (!&__asan_get_shadow_mapping) return;
  for (size_t size = 32; size < USUAL_BLOCK; size += size < 256 ? 32 : size / 2) touch_heap(size);
}

/* glibc registers an area in thread-local memory where the kernel writes which core a thread is on: put
 * back, it would lie. Without it glibc asks the kernel (rseq(2)). */
static void stop_rseq(void) {
  extern const unsigned __rseq_size __attribute__((weak));
  extern const ptrdiff_t __rseq_offset __attribute__((weak));
  if (!&__rseq_size || !__rseq_size) return;
  long area = (long)__builtin_thread_pointer() + __rseq_offset, error = 0;
  for (long bytes = 32; bytes <= 256; bytes += 32) {
    error = CALL(rseq, area, bytes, 1 /* RSEQ_FLAG_UNREGISTER */, MACHINE_RSEQ_SIGNATURE);
    if (!error) return;
  }
  ffuzz_give_up(FFUZZ_WHY_RSEQ, -error);
}

static void ask_sanitizer(void) {
  size_t scale = 0, offset = 0;
  if (&__asan_get_shadow_mapping) __asan_get_shadow_mapping(&scale, &offset);
  ffuzz_saved->shadow = (struct shadow){scale, offset};
}

/* Returns before each run, or once if the runs begin later. */
HIDDEN void ffuzz_snapshot(void) {
  ffuzz_lasting = 0;
  /* A huge page would be copied as a whole. */
  CALL(prctl, PR_SET_THP_DISABLE, 1);
  begin_heap();
  stop_rseq();
  ffuzz_memory_start();
  ask_sanitizer();
  if (!ffuzz_prologue_begins()) ffuzz_snapshot_take();
}

#else
HIDDEN void ffuzz_snapshot(void) { ffuzz_lasting = 0; }
HIDDEN int ffuzz_is_put_back(void) { return 0; }
HIDDEN void ffuzz_snapshot_run_ends(int status) { _exit(status); }
#endif
