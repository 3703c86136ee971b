/* The snapshot itself. The rules for this code are in state.h. */
#define _GNU_SOURCE
#include "snapshot/take.h"

#if FFUZZ_HAS_SNAPSHOTS
#include "breakpoints.h"
#include "domains.h"
#include "edge-map.h"
#include "log.h"
#include "novelty.h"
#include "runs.h"
#include "snapshot/changes.h"
#include "snapshot/cycle.h"
#include "snapshot/filter.h"
#include "snapshot/mappings.h"
#include "snapshot/pages.h"

static void save_maps(void) {
  struct saved *saved = ffuzz_saved;
  ffuzz_run_ends();
  saved->edge_count = ffuzz_edges_count();
  saved->key_count = ffuzz_keys_count();
  if (saved->key_count == UINT32_MAX) ffuzz_give_up(FFUZZ_WHY_KEYS, 0);
  saved->edges = ffuzz_own_memory(saved->edge_count * sizeof *saved->edges);
  saved->keys = ffuzz_own_memory(saved->key_count * sizeof *saved->keys);
  ffuzz_edges_save(saved->edges);
  ffuzz_keys_save(saved->keys);
  if (!ffuzz_log_bytes()) return;
  saved->log = ffuzz_own_memory(ffuzz_log_bytes());
  ffuzz_log_save(saved->log);
}

static void take(void) {
  ffuzz_saved->signal_mask = ffuzz_block_signals();
  save_maps();
  ffuzz_memory_open();
  ffuzz_changes_start();
  if (ffuzz_breakpoints) ffuzz_breakpoints->forget_met();
  ffuzz_memory_save();
  ffuzz_filter_start();
  ffuzz_memory_seal();
  ffuzz_changes->has_all = 1;
  ffuzz_runs->prologue_calls = ffuzz_saved->prologue;
  ffuzz_snapshot_begin_run(0);
}

HIDDEN void ffuzz_snapshot_take(void) { ffuzz_context_save(&ffuzz_saved->start, ffuzz_control_stack(), take); }
#endif
