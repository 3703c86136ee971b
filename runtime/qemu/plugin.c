/* A plugin of QEMU's user mode emulation: edge coverage of a program of any processor, and AFL's fork server, which waits
 * where the program comes to its input. Works with the emulator of the distribution as it is.
 *
 *     qemu-aarch64 -plugin libffuzz-qemu.so ./program
 *
 * FFUZZ_QEMU_MODULES   files whose edges count: names with colons between them, or `all`; else the program alone
 * FFUZZ_QEMU_WITHOUT   of all: beginnings of names of files that do not count
 * FFUZZ_QEMU_INPUT     the input file, if it is no standard input
 * FFUZZ_QEMU_AT_ENTRY  the fork server starts at the program's entry point
 * FFUZZ_QEMU_COLD      see warm.c
 * FFUZZ_QEMU_TRAIL     see trail.c: no coverage, no fork server
 * AFL_ENTRYPOINT       the fork server starts at this address of the guest */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "qemu/api.h"
#include "qemu/calls.h"
#include "qemu/modules.h"
#include "qemu/server.h"
#include "qemu/trail.h"
#include "qemu/warm.h"

EXPORTED int qemu_plugin_version = 1;

/* Read after the library is loaded. */
__attribute__((constructor)) static void choose_version(void) {
  if (qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu) qemu_plugin_version = 2;
}

static unsigned char *map;
static size_t map_mask;
static __thread uint32_t previous;
/* Where the fork server starts: an address, or the calls. */
static uint64_t start_address;
static int starts_at_entry, starts_at_calls, has_program, is_served;
/* Where the emulator has the guest's address 0. */
static uintptr_t guest_base;

static void on_block(unsigned cpu, void *place) {
  (void)cpu;
  uint32_t at = (uint32_t)(uintptr_t)place;
  unsigned char *counter = &map[(at ^ previous) & map_mask];
  unsigned char count = (unsigned char)(*counter + 1);
  *counter = (unsigned char)(count + !count);
  previous = at >> 1;
}

static void on_translated_for_trail(plugin_id id, struct qemu_plugin_tb *block) {
  (void)id;
  ffuzz_qemu_trail_translated(block, qemu_plugin_insn_haddr(qemu_plugin_tb_get_insn(block, 0)));
}

static void on_start(unsigned cpu, void *unused) {
  (void)cpu;
  (void)unused;
  is_served = 1;
  ffuzz_qemu_serve(1);
}

static void find_program(const void *host, uint64_t address) {
  const char *modules = getenv("FFUZZ_QEMU_MODULES");
  if (!modules && getenv("AFL_INST_LIBS")) modules = "all";
  guest_base = (uintptr_t)host - address;
  ffuzz_qemu_choose(modules, getenv("FFUZZ_QEMU_WITHOUT"), (const void *)(guest_base + qemu_plugin_start_code()));
  if (starts_at_entry) start_address = ffuzz_qemu_entry(guest_base);
  has_program = 1;
}

static void on_translated(plugin_id id, struct qemu_plugin_tb *block) {
  (void)id;
  uint64_t address = qemu_plugin_tb_vaddr(block);
  const void *host = qemu_plugin_insn_haddr(qemu_plugin_tb_get_insn(block, 0));
  if (!has_program) find_program(host, address);
  ffuzz_qemu_warm_translated(block, host);
  if (start_address && address == start_address) qemu_plugin_register_vcpu_tb_exec_cb(block, on_start, 0, NULL);
  uint32_t place = ffuzz_qemu_location(host, address, !is_served);
  if (place) qemu_plugin_register_vcpu_tb_exec_cb(block, on_block, 0, (void *)(uintptr_t)place);
}

static void on_call(plugin_id id, unsigned cpu, int64_t number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
                    uint64_t f, uint64_t g, uint64_t h) {
  (void)id, (void)cpu, (void)f, (void)g, (void)h;
  if (is_served) return;
  const uint64_t arguments[5] = {a, b, c, d, e};
  if (!ffuzz_qemu_reaches_input(number, arguments, guest_base)) return;
  is_served = 1;
  ffuzz_qemu_serve(0);
}

static int is_32_bit(const char *target) {
  static const char *const wide[] = {"64", "s390x", "alpha"};
  for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
    if (strstr(target, wide[i])) return 0;
  return 1;
}

EXPORTED int qemu_plugin_install(plugin_id id, const struct plugin_info *info, int count, char **words) {
  (void)count, (void)words;
  if (ffuzz_qemu_trail_start()) {
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translated_for_trail);
    return 0;
  }
  size_t size;
  map = ffuzz_qemu_map(&size);
  if (!map) return 0;
  map_mask = size - 1;
  const char *address = getenv("AFL_ENTRYPOINT");
  if (address) start_address = strtoull(address, NULL, 0);
  starts_at_calls = !start_address && !getenv("FFUZZ_QEMU_AT_ENTRY") && ffuzz_qemu_knows_calls(info->target_name);
  starts_at_entry = !start_address && !starts_at_calls;
  ffuzz_qemu_warm_start(is_32_bit(info->target_name));
  qemu_plugin_register_vcpu_tb_trans_cb(id, on_translated);
  if (starts_at_calls) qemu_plugin_register_vcpu_syscall_cb(id, on_call);
  return 0;
}
