/* Allocates, and writes, the more the longer a chain of bytes in its input is; each step looks like the one before.
 * Its argument says what is done: `m` allocate, `w` write, `t` allocate in threads, `f` allocate in a child,
 * `p` allocate through pointers. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void *volatile kept;
void *(*volatile allocator)(size_t) = malloc;
void (*volatile releaser)(void *) = free;

/* Ends with a jump to malloc: its result returns to the caller. */
__attribute__((noinline)) static void *allocate(size_t bytes) { return malloc(bytes); }

static void *work(void *text) {
  for (int i = 0; i < 1000; i++) {
    void *volatile block = malloc(64);
    free(block);
  }
  free(strdup(text));
  return NULL;
}

static void run_threads(void) {
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, work, "text");
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
}

int main(int argc, char **argv) {
  unsigned char in[64] = {0};
  char what = argc > 1 ? argv[1][0] : 'm';
  size_t n = 1, got = read(0, in, sizeof in);
  while (n + 1 < got && (in[n + 1] & 15) == (in[n] * 5 + 1) % 16) n++;
  if (what == 'm') {
    kept = calloc(n, 1000);
    free(kept);
    kept = allocate(n);
  } else if (what == 'w') {
    for (size_t i = 0; i < n; i++) putchar('x');
    fwrite("end\n", 2, 2, stdout);
  } else if (what == 't') {
    run_threads();
  } else if (what == 'p') {
    for (int i = 0; i < 3; i++) releaser(allocator(700));
  } else if (what == 'f') {
    if (fork() == 0) {
      kept = realloc(kept, 5000);
      _exit(0);
    }
    wait(NULL);
  }
  return 0;
}
