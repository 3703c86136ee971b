/* Programs that breakpoints break, and that are in order without; the argument says how, standard input is the input. One that begins
 * with "BUG" crashes all the same. */
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

static char input[64];
static volatile int seen;

__attribute__((noinline)) static int work(void) {
  if (input[0] == 'B' && input[1] == 'U' && input[2] == 'G') {
    if (write(2, "a bug\n", 6) == 6) abort();
  }
  if (input[0] > 'P') seen++;
  return seen;
}

/* Or a jump. */
static int has_breakpoint(void) {
  unsigned char first = *(const volatile unsigned char *)work;
  return first == 0xcc || first == 0xe9;
}

/* Allows what the program does, and not the return of a signal handler. */
static void filter(unsigned otherwise) {
  struct sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, otherwise),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void handle(int number) { seen += number + work(); }

/* Room for one signal, and none for a breakpoint in its handler. */
static void handle_on_small_stack(void) {
  size_t size = getauxval(AT_MINSIGSTKSZ) + 1024;
  char *pages = mmap(NULL, 1 << 16, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  size_t whole = (size + 4095) & ~(size_t)4095;
  mprotect(pages + 4096, whole, PROT_READ | PROT_WRITE);
  stack_t stack = {.ss_sp = pages + 4096 + whole - size, .ss_size = size};
  sigaltstack(&stack, NULL);
  struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
  sigaction(SIGUSR1, &action, NULL);
  raise(SIGUSR1);
}

int main(int argc, char **argv) {
  const char *how = argc > 1 ? argv[1] : "";
  if (!strcmp(how, "filters-first")) filter(SECCOMP_RET_KILL_PROCESS);
  if (!strcmp(how, "filters-first")) work();
  if (strcmp(how, "reads-nothing") && read(0, input, sizeof input) < 0) return 1;
  if (!strcmp(how, "reads-itself") && has_breakpoint()) abort();
  if (!strcmp(how, "loops") && has_breakpoint())
    for (;;) seen = 0;
  if (!strcmp(how, "at-times") && getpid() % 3 == 0) abort();
  if (!strcmp(how, "filters")) filter(SECCOMP_RET_KILL_PROCESS);
  if (!strcmp(how, "refuses")) filter(SECCOMP_RET_ERRNO | 1);
  if (!strcmp(how, "small-stack")) handle_on_small_stack();
  return work() > 100;
}
