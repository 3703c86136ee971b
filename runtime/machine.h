/* All that the runtime knows of a processor: its system calls, its registers, its signal frames. To
 * support another one is to write its branch here and in machine.c.
 *
 * The code between two runs uses nothing but what is declared here: no libc, no thread-local memory. */
#ifndef FFUZZ_MACHINE_H
#define FFUZZ_MACHINE_H

#include "base.h"

/* A system call; -errno if it fails, errno itself stays. On a processor with snapshots this is one
 * instruction, which the filter lets pass. */
HIDDEN long ffuzz_kernel(long number, long a, long b, long c, long d, long e, long f);

#if defined(__x86_64__)
#define FFUZZ_HAS_SNAPSHOTS 1

#include <linux/audit.h>
#include <ucontext.h>

#define MACHINE_ARCH AUDIT_ARCH_X86_64
#define MACHINE_RSEQ_SIGNATURE 0x53053053

/* What a function call keeps. */
struct context {
  uint64_t rbx, rbp, r12, r13, r14, r15, rsp, rip;
  uint32_t mxcsr;
  uint16_t x87_control;
};

/* A system call that was trapped. */
static inline long trapped_argument(const ucontext_t *at, int number) {
  static const int places[] = {REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8, REG_R9};
  return at->uc_mcontext.gregs[places[number]];
}
static inline void trapped_returns(ucontext_t *at, long result) { at->uc_mcontext.gregs[REG_RAX] = result; }
/* It is made once more when the handler returns; its instruction has two bytes. */
static inline void trapped_again(ucontext_t *at, long number) {
  trapped_returns(at, number);
  at->uc_mcontext.gregs[REG_RIP] -= 2;
}

/* It goes on there when the handler returns. */
static inline void trapped_goes_on(ucontext_t *at, void (*there)(void)) {
  at->uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)there;
}

/* Loops and not memcpy, which a sanitizer may have replaced. */
static inline void copy_bytes(void *to, const void *from, uint64_t count) {
  __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
}
static inline void zero_bytes(void *to, uint64_t count) {
  __asm__ volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(0) : "memory");
}

#else
#define FFUZZ_HAS_SNAPSHOTS 0
#endif

#if FFUZZ_HAS_SNAPSHOTS
/* Where the kernel returns to from the instruction of ffuzz_kernel. */
extern const char ffuzz_kernel_return[] HIDDEN;
/* Behind the last instruction of ours that is a system call; ffuzz_kernel is before the first. */
extern const char ffuzz_kernel_end[] HIDDEN;
/* Notes where it was called, then calls `go` on that stack. It returns each time its context is loaded. */
HIDDEN void ffuzz_context_save(struct context *here, void *stack, void (*go)(void)) __attribute__((returns_twice));
HIDDEN void ffuzz_context_load(const struct context *there) __attribute__((noreturn));
HIDDEN void ffuzz_go_on_stack(void *stack, void (*go)(void)) __attribute__((noreturn));
/* What a signal handler returns to. */
HIDDEN void ffuzz_signal_return(void);
#endif

#endif
