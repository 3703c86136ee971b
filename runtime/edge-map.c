/* The edge map that is shared, and what is done to all maps where a run begins and where it ends. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>

#include "edge-map.h"
#include "breakpoints.h"
#include "copies.h"
#include "domains.h"
#include "maps.h"
#include "modules.h"

#define BLOCK 64u

static uint8_t *edges; /* the whole edge map, beside the modules' own pages */
static uint64_t edges_size;
static int foreign_fuzzer;
static int is_rejected;
static uint32_t *rejected_count;

HIDDEN void (*ffuzz_at_end_of_run)(void);

HIDDEN void ffuzz_edges_attach(uint8_t *map, uint64_t size, int is_foreign) {
  edges = map;
  edges_size = size;
  foreign_fuzzer = is_foreign;
  memset(edges, 0, size);
}

HIDDEN void ffuzz_rejected_attach(uint32_t *count) { rejected_count = count; }

HIDDEN void ffuzz_edges_start(void) {
  if (edges) ffuzz_copies_start(edges, edges_size);
  ffuzz_hooks_call();
}

/* AFL takes an empty map for a program that is not instrumented. One that has no counter at all
 * (only domains, say) shows a single one. */
HIDDEN void ffuzz_show_life(void) {
  if (foreign_fuzzer && !ffuzz_module_count) edges[0] = 1;
}

HIDDEN void ffuzz_run_reject(int rejected) { is_rejected = rejected; }

HIDDEN int ffuzz_run_is_rejected(void) { return is_rejected; }

/* Clears blocks with a hit only, because a harness may reject most of its inputs; maps are whole pages. AFL takes an
 * empty map for a program that is not instrumented: as with AFL++'s driver it shows a single edge. */
static void forget_rejected(void) {
  is_rejected = 0;
  if (rejected_count) ++*rejected_count;
  for (uint64_t at = 0; at < edges_size; at += BLOCK) {
    uint64_t words[BLOCK / 8], any = 0;
    memcpy(words, edges + at, BLOCK);
    for (uint32_t i = 0; i < BLOCK / 8; i++) any |= words[i];
    if (any) memset(edges + at, 0, BLOCK);
  }
  ffuzz_domains_reset();
  if (edges && foreign_fuzzer) edges[0] = 1;
}

HIDDEN void ffuzz_run_begins(void) {
  if (edges) {
    memset(edges, 0, edges_size);
    ffuzz_copies_clear();
    ffuzz_show_life();
  }
  ffuzz_domains_reset();
  ffuzz_hooks_call();
}

HIDDEN void ffuzz_run_goes_on(void) {
  ffuzz_copies_clear();
  ffuzz_show_life();
  ffuzz_hooks_call();
}

HIDDEN void ffuzz_run_ends(void) {
  if (ffuzz_at_end_of_run) ffuzz_at_end_of_run();
  ffuzz_copies_flush();
  if (is_rejected) forget_rejected();
  if (ffuzz_breakpoints) ffuzz_breakpoints->run_ends();
}

HIDDEN void ffuzz_run_is_over(void) {
  if (ffuzz_at_end_of_run) ffuzz_at_end_of_run();
  ffuzz_copies_flush();
  if (is_rejected) forget_rejected();
  ffuzz_copies_stop();
  for (uint32_t i = 0; i < ffuzz_module_count; i++) {
    const struct module *m = &ffuzz_modules[i];
    if (!m->mapped) continue;
    /* Should this fail the pages stay shared: some edges too many, no harm beyond that. */
    mmap(m->start, ffuzz_page_up(m->count), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  }
  ffuzz_domains_detach();
}
