/* Uses memory and the kernel in ways that are dear, or hard, to put back: each -D one of them. The edges say
 * whether it finds everything as it was. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB (1u << 20)

static unsigned char *area;
static volatile int complaints;

#ifdef HUGE
/* Of pages of 2 MiB, where the kernel has them. */
__attribute__((constructor)) static void prepare(void) {
  area = aligned_alloc(2 * MIB, 8 * MIB);
  madvise(area, 8 * MIB, MADV_HUGEPAGE);
  memset(area, 7, 8 * MIB);
}
#endif

static void look(void) {
  for (unsigned i = 0; area && i < 8 * MIB; i += 1024)
    if (area[i] != 7) complaints++;
}

/* In three of the four stretches, and in new ones. */
__attribute__((unused)) static void write_huge(const unsigned char *input, int length) {
  unsigned char *more = aligned_alloc(2 * MIB, 4 * MIB);
  madvise(more, 4 * MIB, MADV_HUGEPAGE);
  for (int i = 0; i < length; i++) {
    area[(i % 3) * 2 * MIB + input[i] * 8192u] = 1;
    if (more[input[i] * 16384u]) complaints++;
    more[input[i] * 16384u] = 1;
  }
}

/* As many MiB as the first byte says, or one, which are never given back. */
__attribute__((unused)) static void take(unsigned char mib) {
#ifdef LEAST
  mib = 1;
#endif
  volatile char *block = malloc((size_t)mib * MIB);
  if (!block) {
    puts("none");
    return;
  }
  for (size_t at = 0; at < (size_t)mib * MIB; at += 4096) block[at] = 1;
  if (dup(2) != 3) complaints++;
}

/* More system calls than pages, each of them trapped: several times as dear as a fork, on a loaded machine as well. */
__attribute__((unused, noinline, no_sanitize("coverage"))) static void call_often(void) {
  for (int i = 0; i < 8000; i++) umask(022);
}

int main(void) {
  unsigned char input[64];
  int length = (int)read(0, input, sizeof input);
  if (length < 1) return 1;
  look();
#ifdef HUGE
  write_huge(input, length);
#endif
#ifdef TAKE
  take(input[0]);
#endif
#ifdef CALLS
  call_often();
#endif
  for (int i = 0; i < length; i++)
    if (input[i] == '[') puts("list");
  return 0;
}
