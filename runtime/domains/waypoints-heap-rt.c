/* Domain `heap`: the most bytes that were allocated at the same time in a run. Key 0 is the whole
 * program (what a memory limit is about), every other key one place that allocates (where the bytes
 * come from). Blocks from before the run, and those of code that was not compiled by ffuzz-cc, do
 * not count, neither when they come nor when they go. */
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#define __AFL_COMPILER 1
#include "waypoints.h"

#define KEYS 65536u
/* Of the tables below. They are small, because a run that is restored has each page copied that it has changed. */
#define FIRST_BLOCKS 2048u
#define FIRST_SITES 256u

FFUZZ_NEW_DOMAIN(__afl_heap_dsf, "heap", KEYS, FUZZFACTORY_REDUCER_MAX, 0)
FFUZZ_NAME_KEY("heap", 0, "peak of all blocks in bytes")

/* A living block. `run` tells entries of this run from what is left of earlier ones. */
struct block {
  uintptr_t address; /* 1: it was given back */
  uint64_t bytes;
  uint32_t key, run;
};

/* What is live of a key. */
struct site {
  uint64_t live;
  uint32_t key, run;
};

/* Open addressing; at most half of each is in use. */
static struct block first_blocks[FIRST_BLOCKS], *table = first_blocks;
static struct site first_sites[FIRST_SITES], *sites = first_sites;
static size_t room = FIRST_BLOCKS, used, site_room = FIRST_SITES, sites_used;
static uint32_t run = 1;
static uint64_t live_total;
static char lock;

static void acquire(void) {
  while (__atomic_test_and_set(&lock, __ATOMIC_ACQUIRE))
    while (__atomic_load_n(&lock, __ATOMIC_RELAXED)) sched_yield();
}

static void release(void) { __atomic_clear(&lock, __ATOMIC_RELEASE); }

/* The entry of a block, or the free one where it belongs. */
static struct block *find(uintptr_t address) {
  size_t at = (size_t)((address >> 4) * 0x9e3779b97f4a7c15u >> 20);
  for (;; at++) {
    struct block *b = &table[at & (room - 1)];
    if (b->run != run || b->address == address) return b;
  }
}

static struct site *find_site(uint32_t key) {
  for (size_t at = key;; at++) {
    struct site *s = &sites[at & (site_room - 1)];
    if (s->run != run || s->key == key) return s;
  }
}

/* Not malloc: the program may replace that. */
static void *pages(size_t bytes) {
  void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return at == MAP_FAILED ? NULL : at;
}

/* Twice the room, without what was given back. */
static int grow(void) {
  struct block *old = table, *new = pages(room * 2 * sizeof *table);
  size_t old_room = room;
  if (!new) return 0;
  table = new;
  room *= 2;
  used = 0;
  for (size_t i = 0; i < old_room; i++)
    if (old[i].run == run && old[i].address != 1) *find(old[i].address) = old[i], used++;
  if (old != first_blocks) munmap(old, old_room * sizeof *old);
  return 1;
}

static int grow_sites(void) {
  struct site *old = sites, *new = pages(site_room * 2 * sizeof *sites);
  size_t old_room = site_room;
  if (!new) return 0;
  sites = new;
  site_room *= 2;
  for (size_t i = 0; i < old_room; i++)
    if (old[i].run == run) *find_site(old[i].key) = old[i];
  if (old != first_sites) munmap(old, old_room * sizeof *old);
  return 1;
}

static uint32_t shown(uint64_t bytes) { return bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)bytes; }

static void drop(uintptr_t address) {
  if (!used) return;
  struct block *b = find(address);
  if (b->run != run || b->address != address) return;
  live_total -= b->bytes;
  find_site(b->key)->live -= b->bytes;
  b->address = 1;
}

static void add(uint32_t key, uintptr_t address, uint64_t bytes) {
  key %= KEYS;
  drop(address); /* given back by code that we do not see */
  if (used * 2 >= room && !grow()) return;
  if (sites_used * 2 >= site_room && !grow_sites()) return;
  struct block *b = find(address);
  used += b->run != run;
  *b = (struct block){address, bytes, key, run};
  struct site *site = find_site(key);
  if (site->run != run) *site = (struct site){0, key, run}, sites_used++;
  site->live += bytes;
  live_total += bytes;
  __fuzzfactory_dsf_max(__afl_heap_dsf, 0, shown(live_total));
  __fuzzfactory_dsf_max(__afl_heap_dsf, key, shown(site->live));
}

void __ffuzz_heap_got(uint32_t key, const void *block, uint64_t count, uint64_t size) {
  uint64_t bytes;
  if (!block || __builtin_mul_overflow(count, size, &bytes)) return;
  acquire();
  add(key, (uintptr_t)block, bytes);
  release();
}

/* posix_memalign stores its result, unless it fails. */
void __ffuzz_heap_placed(uint32_t key, void *const *place, uint32_t status, uint64_t size) {
  if (status == 0) __ffuzz_heap_got(key, *place, 1, size);
}

void __ffuzz_heap_copied(uint32_t key, const char *copy) {
  if (copy) __ffuzz_heap_got(key, copy, 1, strlen(copy) + 1);
}

void __ffuzz_heap_gives(const void *block) {
  if (!block) return;
  acquire();
  drop((uintptr_t)block);
  release();
}

/* realloc: the old block lives on if there is no new one, unless it was to be freed. */
void __ffuzz_heap_moved(uint32_t key, const void *old, const void *block, uint64_t count, uint64_t size) {
  if (block || count == 0 || size == 0) __ffuzz_heap_gives(old);
  __ffuzz_heap_got(key, block, count, size);
}

/* While the program forks nobody else has the lock. */
void __ffuzz_heap_hold(void) { acquire(); }
void __ffuzz_heap_let_go(void) { release(); }

/* A process that forked with the lock held has one thread, which does not hold it. */
static void __ffuzz_heap_begin(void) {
  run++;
  used = 0;
  sites_used = 0;
  live_total = 0;
  release();
}
FFUZZ_EACH_RUN(__ffuzz_heap_begin)
