/* What is used of QEMU's interface for plugins: that of version 1 (QEMU 6.0 to 8.2), of which later versions keep these
 * parts. And what is no interface, but exported by most builds: weak, and only used after checks. */
#ifndef FFUZZ_QEMU_API_H
#define FFUZZ_QEMU_API_H

#include <stddef.h>
#include <stdint.h>

#define EXPORTED __attribute__((visibility("default")))
#define WEAK __attribute__((weak))

typedef uint64_t plugin_id;
struct qemu_plugin_tb;
struct qemu_plugin_insn;

struct plugin_info {
  const char *target_name;
  /* more that is not used */
};

typedef void block_hook(unsigned cpu, void *data);
typedef void translated_hook(plugin_id id, struct qemu_plugin_tb *block);
typedef void call_hook(plugin_id id, unsigned cpu, int64_t number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
                       uint64_t f, uint64_t g, uint64_t h);

void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, translated_hook *hook);
void qemu_plugin_register_vcpu_syscall_cb(plugin_id id, call_hook *hook);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *block, block_hook *hook, int registers, void *data);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *block);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block, size_t index);
void *qemu_plugin_insn_haddr(const struct qemu_plugin_insn *instruction);
uint64_t qemu_plugin_start_code(void);

/* Came with version 2, the oldest that QEMU 9.0 accepts. */
WEAK void qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(void);

WEAK void *tb_gen_code(void *cpu, uint64_t pc, uint64_t base, uint32_t flags, int compile_flags);
WEAK void *tcg_tb_lookup(uintptr_t machine_code);
WEAK void *qemu_get_cpu(int number);
WEAK void mmap_lock(void);
WEAK void mmap_unlock(void);

#endif
