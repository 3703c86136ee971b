/* See machine.h. */
#define _GNU_SOURCE
#include "machine.h"

#if defined(__x86_64__)
__asm__(
    ".text\n"
    ".hidden ffuzz_kernel, ffuzz_kernel_return, ffuzz_kernel_end, ffuzz_context_save, ffuzz_context_load\n"
    ".hidden ffuzz_go_on_stack, ffuzz_signal_return\n"
    ".globl ffuzz_kernel\n"
    ".type ffuzz_kernel, @function\n"
    "ffuzz_kernel:\n"
    "  mov %rdi, %rax\n"
    "  mov %rsi, %rdi\n"
    "  mov %rdx, %rsi\n"
    "  mov %rcx, %rdx\n"
    "  mov %r8, %r10\n"
    "  mov %r9, %r8\n"
    "  mov 8(%rsp), %r9\n"
    "  syscall\n"
    ".globl ffuzz_kernel_return\n"
    "ffuzz_kernel_return:\n"
    "  ret\n"
    ".globl ffuzz_context_save\n"
    ".type ffuzz_context_save, @function\n"
    "ffuzz_context_save:\n"
    "  mov %rbx, 0(%rdi)\n"
    "  mov %rbp, 8(%rdi)\n"
    "  mov %r12, 16(%rdi)\n"
    "  mov %r13, 24(%rdi)\n"
    "  mov %r14, 32(%rdi)\n"
    "  mov %r15, 40(%rdi)\n"
    "  lea 8(%rsp), %rax\n"
    "  mov %rax, 48(%rdi)\n"
    "  mov (%rsp), %rax\n"
    "  mov %rax, 56(%rdi)\n"
    "  stmxcsr 64(%rdi)\n"
    "  fnstcw 68(%rdi)\n"
    "  mov %rsi, %rdi\n"
    "  mov %rdx, %rsi\n"
    ".globl ffuzz_go_on_stack\n"
    ".type ffuzz_go_on_stack, @function\n"
    "ffuzz_go_on_stack:\n"
    "  mov %rdi, %rsp\n"
    "  xor %ebp, %ebp\n"
    "  cld\n"
    "  call *%rsi\n"
    "  ud2\n"
    ".globl ffuzz_context_load\n"
    ".type ffuzz_context_load, @function\n"
    "ffuzz_context_load:\n"
    "  mov 0(%rdi), %rbx\n"
    "  mov 8(%rdi), %rbp\n"
    "  mov 16(%rdi), %r12\n"
    "  mov 24(%rdi), %r13\n"
    "  mov 32(%rdi), %r14\n"
    "  mov 40(%rdi), %r15\n"
    "  mov 48(%rdi), %rsp\n"
    "  fninit\n"
    "  ldmxcsr 64(%rdi)\n"
    "  fldcw 68(%rdi)\n"
    "  cld\n"
    "  jmp *56(%rdi)\n"
    ".globl ffuzz_signal_return\n"
    ".type ffuzz_signal_return, @function\n"
    "ffuzz_signal_return:\n"
    "  mov $15, %eax\n"
    "  syscall\n"
    "  ud2\n"
    ".globl ffuzz_kernel_end\n"
    "ffuzz_kernel_end:\n");

_Static_assert(__builtin_offsetof(struct context, rip) == 56 && __builtin_offsetof(struct context, mxcsr) == 64 &&
                   __builtin_offsetof(struct context, x87_control) == 68,
               "the code above knows these places");
#else
#include <errno.h>
#include <unistd.h>

HIDDEN long ffuzz_kernel(long number, long a, long b, long c, long d, long e, long f) {
  int before = errno;
  long result = syscall(number, a, b, c, d, e, f);
  if (result == -1) result = -errno;
  errno = before;
  return result;
}
#endif
