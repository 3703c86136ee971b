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

/* A block that a child has executed, as its translation depends on. */
struct block {
  uint64_t address, host, base;
  uint32_t flags, compile_flags;
};

/* What a child tells the fork server. The guest can write here: nothing in it is trusted. */
struct reports {
  atomic_uint count;
  struct block blocks[MOST_AT_ONCE];
};

static struct reports *reports;
static int is_child, is_narrow;
/* Addresses of blocks that were translated here, 0 where there is none. */
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

/* Reads the record of the block that has called this; its first word is the address if it has the form that is known. */
static __attribute__((noinline)) void on_block(unsigned cpu, void *data) {
  (void)cpu;
  struct block *block = data;
  if (!block->address) return;
  const unsigned char *record = tcg_tb_lookup((uintptr_t)__builtin_return_address(0) - 1);
  uint64_t address = block->address, found = 0;
  size_t word = is_narrow ? 4 : 8;
  if (record) memcpy(&found, record, word);
  if (found == address) {
    memcpy(&block->base, record + word, word);
    memcpy(&block->flags, record + 2 * word, sizeof block->flags);
    memcpy(&block->compile_flags, record + 2 * word + 4, sizeof block->compile_flags);
    unsigned at = atomic_fetch_add(&reports->count, 1);
    if (at < MOST_AT_ONCE) reports->blocks[at] = *block;
  }
  block->address = 0;
}

void ffuzz_qemu_warm_translated(struct qemu_plugin_tb *translation, const void *host) {
  if (!reports || !is_child) return;
  struct block *block = calloc(1, sizeof *block);
  if (!block) return;
  block->address = qemu_plugin_tb_vaddr(translation);
  block->host = (uintptr_t)host;
  qemu_plugin_register_vcpu_tb_exec_cb(translation, on_block, 0, block);
}

void ffuzz_qemu_warm_child(void) { is_child = 1; }

void ffuzz_qemu_warm_up(void) {
  if (!reports) return;
  unsigned count = atomic_exchange(&reports->count, 0);
  if (count > MOST_AT_ONCE) count = MOST_AT_ONCE;
  if (!count) return;
  void *cpu = qemu_get_cpu(0);
  mmap_lock();
  for (unsigned i = 0; i < count; i++) {
    struct block block = reports->blocks[i];
    if (!ffuzz_qemu_is_file(block.host) || !block.address || !remember(block.address)) continue;
    tb_gen_code(cpu, block.address, block.base, block.flags, (int)block.compile_flags);
  }
  mmap_unlock();
}
