/* Programs that no run of can be put back, or that had better be forked: each -D one reason. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Whether it gets to its first line before the program ends is not for the edges to say. */
__attribute__((unused, no_sanitize("coverage"))) static void *idle(void *unused) {
  for (;;) pause();
  return unused;
}

__attribute__((constructor)) static void refuse(void) {
  pthread_t id;
  (void)id;
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
#ifdef PROLOGUE
  pthread_t early;
  pthread_create(&early, NULL, idle, NULL);
#endif
  ssize_t length = read(0, text, sizeof text);
#ifdef EACH_RUN
  pthread_t id;
  pthread_create(&id, NULL, idle, NULL);
#endif
  if (length < 1) return 1;
#ifdef WATCHED /* what cannot be hidden from it */
  if (text[0] == '{' && prctl(PR_GET_SECCOMP)) puts("watched");
#endif
  for (ssize_t i = 0; i < length; i++)
    if (text[i] == '[') puts("list");
  return text[0] == '{' ? 2 : 3;
}
