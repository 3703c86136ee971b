/* An ordinary program is put back to where it was before its run, in place of being forked. The rules for this code
 * are in state.h. */
#define _GNU_SOURCE
#include "snapshot/cycle.h"

#if FFUZZ_HAS_SNAPSHOTS
#include <fcntl.h>
#include <sys/syscall.h>

#include "breakpoints.h"
#include "domains.h"
#include "edge-map.h"
#include "log.h"
#include "novelty.h"
#include "runs.h"
#include "snapshot/changes.h"
#include "snapshot/pages.h"

HIDDEN void *ffuzz_control_stack(void) { return ffuzz_changes->control_stack + STACK_BYTES; }

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
  if (kind == FFUZZ_INPUT_NONE || kind == FFUZZ_INPUT_NET) return;
  if (kind == FFUZZ_INPUT_FILE && (index == 0 || ffuzz_changes->what & CHANGED_INPUT)) open_input();
  long written = CALL(pwrite64, OWN_INPUT, bytes, length, 0);
  if (written != (long)length) ffuzz_give_up(FFUZZ_WHY_INPUT, written < 0 ? -written : 0);
  /* Always: the run before may have made it longer. */
  long error = CALL(ftruncate, OWN_INPUT, length);
  if (error) ffuzz_give_up(FFUZZ_WHY_INPUT, -error);
  if (kind == FFUZZ_INPUT_STDIN) CALL(lseek, OWN_INPUT, 0, SEEK_SET);
}

HIDDEN void ffuzz_snapshot_begin_run(uint32_t index) {
  put_input(index);
  ffuzz_case_begins(index);
  ffuzz_left->count = 0;
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
HIDDEN uint64_t ffuzz_block_signals(void) {
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

static void load_maps(void) {
  ffuzz_edges_load(ffuzz_saved->edges, ffuzz_saved->edge_count);
  ffuzz_keys_load(ffuzz_saved->keys, ffuzz_saved->key_count);
  if (ffuzz_saved->log) ffuzz_log_load(ffuzz_saved->log);
}

static void set_all_breakpoints(void) {
  ffuzz_breakpoints->prepare(NULL);
  ffuzz_changes->has_all = 1;
}

/* The same case once more: with breakpoints, a run does not meet those of blocks that the fuzzer knows, so the map of
 * one that shows something is not whole. */
static void repeat_run(void) {
  set_all_breakpoints();
  ffuzz_run_begins();
  load_maps();
  ffuzz_snapshot_begin_run(ffuzz_runs->finished);
}

static void choose_breakpoints(void) {
  if (!ffuzz_breakpoints) return;
  if (ffuzz_runs->each)
    set_all_breakpoints();
  else if (ffuzz_changes->has_all) {
    ffuzz_breakpoints->prepare(ffuzz_edges_unseen());
    ffuzz_changes->has_all = 0;
  }
}

/* From the end of a run to the beginning of the next. */
static void between_runs(void) {
  uint64_t blocked = ffuzz_block_signals();
  end_if_crash(ffuzz_changes->status);
  ffuzz_run_ends();
  ffuzz_changes_undo();
  refuse_pending(blocked);
  /* Counted in memory that is put back. */
  int has_met = ffuzz_breakpoints && ffuzz_breakpoints->were_met();
  ffuzz_memory_put_back();
  enum ffuzz_shown shown = ffuzz_case_shows();
  int is_whole = !ffuzz_breakpoints || ffuzz_changes->has_all;
  if (!is_whole && (has_met || shown == FFUZZ_SHOWN_NEWS)) repeat_run();
  uint32_t next = ffuzz_case_ends(shown);
  choose_breakpoints();
  load_maps();
  ffuzz_snapshot_begin_run(next);
}

HIDDEN int ffuzz_is_put_back(void) { return ffuzz_changes && ffuzz_changes->is_running; }

HIDDEN void ffuzz_snapshot_run_ends(int status) {
  struct changes *changes = ffuzz_changes;
  changes->is_running = 0;
  changes->status = status;
  ffuzz_go_on_stack(ffuzz_control_stack(), between_runs);
}

#else
#include <unistd.h>

HIDDEN int ffuzz_is_put_back(void) { return 0; }
HIDDEN void ffuzz_snapshot_run_ends(int status) { _exit(status); }
#endif
