/* Programs that no run of can be put back, or that had better be forked: each -D one reason. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Whether it gets to its first line before the program ends is not for the edges to say. */
__attribute__((unused, no_sanitize("coverage"))) static void *idle(void *unused) {
  for (;;) pause();
  return unused;
}

/* As a container does it. */
__attribute__((unused)) static void forbid(unsigned number) {
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog filter = {sizeof code / sizeof *code, code};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

__attribute__((constructor)) static void refuse(void) {
  pthread_t id;
  (void)id;
#ifdef NO_FAULTS
  forbid(SYS_userfaultfd);
#endif
#ifdef NO_FILTER
  forbid(SYS_seccomp);
#endif
#ifdef THREAD
  pthread_create(&id, NULL, idle, NULL);
#endif
#ifdef SHARED
  mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
#endif
#ifdef TIMER
  alarm(1000);
#endif
#ifdef DESCRIPTOR
  dup2(0, 190);
#endif
}

int main(void) {
  char text[64];
  ssize_t length = read(0, text, sizeof text);
#ifdef EACH_RUN
  pthread_t id;
  pthread_create(&id, NULL, idle, NULL);
#endif
  if (length < 1) return 1;
  for (ssize_t i = 0; i < length; i++)
    if (text[i] == '[') puts("list");
  return text[0] == '{' ? 2 : 3;
}
