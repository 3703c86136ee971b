/* See warm.h. No interface of QEMU translates a block, so its own functions do, if they are there and a record of a block
 * has the form that is known (QEMU 7.2). Else children translate for themselves. */
#define _GNU_SOURCE
#include "qemu/warm.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "qemu/api.h"
#include "qemu/modules.h"

#define MOST_AT_ONCE 16384
#define TABLE_BITS 20

/* What a child tells the fork server. The guest can write here: nothing in it is trusted. */
struct reports {
  atomic_uint count;
  struct {
    uint64_t address, host;
  } blocks[MOST_AT_ONCE];
};

static struct reports *reports;
static int is_child, is_narrow, is_ready, is_watched;
/* Of a block that was executed. */
static uint64_t base;
static uint32_t flags, compile_flags;
/* Blocks that were translated here: addresses, 0 where there is none. */
static uint64_t *translated;

void ffuzz_qemu_warm_start(int is_32_bit) {
  is_narrow = is_32_bit;
  if (getenv("FFUZZ_QEMU_COLD") || !tb_gen_code || !tcg_tb_lookup || !qemu_get_cpu || !mmap_lock || !mmap_unlock) return;
  void *shared = mmap(NULL, sizeof *reports, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  void *table = mmap(NULL, sizeof *translated << TABLE_BITS, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED || table == MAP_FAILED) return;
  reports = shared;
  translated = table;
}

/* 1 if the block is new. A full table has no new ones. */
static int remember(uint64_t address) {
  uint64_t mask = (1 << TABLE_BITS) - 1, at = address * 0x9e3779b97f4a7c15 >> (64 - TABLE_BITS);
  for (int probes = 0; probes < 32; probes++, at = (at + 1) & mask) {
    if (translated[at] == address) return 0;
    if (translated[at]) continue;
    translated[at] = address;
    return 1;
  }
  return 0;
}

/* The record of the block that called this. */
static __attribute__((noinline)) void look(unsigned cpu, void *data) {
  (void)cpu;
  if (is_ready) return;
  const unsigned char *record = tcg_tb_lookup((uintptr_t)__builtin_return_address(0) - 1);
  uint64_t address = (uintptr_t)data, found = 0;
  size_t word = is_narrow ? 4 : 8;
  if (!record) return;
  memcpy(&found, record, word);
  memcpy(&base, record + word, word);
  memcpy(&flags, record + 2 * word, sizeof flags);
  memcpy(&compile_flags, record + 2 * word + 4, sizeof compile_flags);
  is_ready = found == address && address;
}

void ffuzz_qemu_warm_translated(struct qemu_plugin_tb *block, const void *host) {
  if (!reports) return;
  uint64_t address = qemu_plugin_tb_vaddr(block);
  if (is_child) {
    unsigned at = atomic_fetch_add(&reports->count, 1);
    if (at >= MOST_AT_ONCE) return;
    reports->blocks[at].address = address;
    reports->blocks[at].host = (uintptr_t)host;
    return;
  }
  remember(address);
  if (is_watched) return;
  is_watched = 1;
  qemu_plugin_register_vcpu_tb_exec_cb(block, look, 0, (void *)(uintptr_t)address);
}

void ffuzz_qemu_warm_child(void) { is_child = 1; }

void ffuzz_qemu_warm_up(void) {
  if (!reports) return;
  unsigned count = atomic_exchange(&reports->count, 0);
  if (count > MOST_AT_ONCE) count = MOST_AT_ONCE;
  if (!count || !is_ready) return;
  void *cpu = qemu_get_cpu(0);
  mmap_lock();
  for (unsigned i = 0; i < count; i++) {
    uint64_t address = reports->blocks[i].address;
    if (!ffuzz_qemu_is_file(reports->blocks[i].host) || !remember(address)) continue;
    tb_gen_code(cpu, address, base, flags, (int)compile_flags);
  }
  mmap_unlock();
}
