/* Runs a program where the kernel answers a request with an error, as an old one or a container does:
 *   forbidding userfaultfd|seccomp|scan|async|code ERROR PROGRAM WORDS…
 * Error 0 kills the process that asks. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGEMAP_SCAN 0xc0606610u
#define UFFDIO_API 0xc018aa3fu

#define NUMBER offsetof(struct seccomp_data, nr)
#define SECOND_ARGUMENT offsetof(struct seccomp_data, args[1])
#define THIRD_ARGUMENT offsetof(struct seccomp_data, args[2])

/* A system call, and what else has to be of which value. */
struct request {
  const char *name;
  unsigned call, field, value;
};

static const struct request requests[] = {
    {"userfaultfd", SYS_userfaultfd, NUMBER, SYS_userfaultfd},
    {"seccomp", SYS_seccomp, NUMBER, SYS_seccomp},
    {"scan", SYS_ioctl, SECOND_ARGUMENT, PAGEMAP_SCAN},
    {"async", SYS_ioctl, SECOND_ARGUMENT, UFFDIO_API},
    {"code", SYS_mprotect, THIRD_ARGUMENT, PROT_READ | PROT_WRITE | PROT_EXEC},
};

static int forbid(const struct request *r, unsigned error) {
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, NUMBER),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, r->call, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, r->field),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, r->value, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, error ? SECCOMP_RET_ERRNO | error : SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog filter = {sizeof code / sizeof *code, code};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

int main(int argc, char **argv) {
  if (argc < 4) return 2;
  for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
    if (!strcmp(requests[i].name, argv[1]) && forbid(&requests[i], (unsigned)atoi(argv[2]))) perror("forbidding");
  execvp(argv[3], argv + 3);
  perror(argv[3]);
  return 1;
}
