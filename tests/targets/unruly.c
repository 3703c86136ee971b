/* Two numbers one behind the other, in a program that does what makes comparisons hard to see; -D says what. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FIRST 0xdeadbeefu
#define SECOND 0x12345678u

#ifdef PART
int part(uint32_t number) { return number == FIRST; }
#else

static uint32_t number(const uint8_t *at) {
  uint32_t n;
  memcpy(&n, at, sizeof n);
  return n;
}

static int is_first(uint32_t n) { return n == FIRST; }

/* All memory that is shared with the fuzzer, another part of it by each input. */
static void scribble(const uint8_t *data) {
  FILE *maps = fopen("/proc/self/maps", "r");
  char line[512], rights[8];
  unsigned long start, end;
  while (maps && fgets(line, sizeof line, maps)) {
    if (sscanf(line, "%lx-%lx %7s", &start, &end, rights) != 3 || strcmp(rights, "rw-s")) continue;
    for (unsigned long at = start + data[1] * 977u % 4096; at < end; at += 1 + data[2]) *(volatile uint8_t *)at = data[3];
  }
  if (maps) fclose(maps);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 32) return 0;
  int (*check)(uint32_t) = is_first;
#ifdef SCRIBBLES
  if (data[0] & 1) scribble(data);
#endif
#ifdef COMPARES_FOR_EVER
  volatile uint32_t i = 0;
  if (data[0] == 'A')
    while (i++ != number(data + 4) || data[9] != 3) {}
#endif
#ifdef COMPARES_ADDRESSES
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  void *block = malloc(size * 100);
  volatile int equal = ((uint32_t)(uintptr_t)block == number(data + 16)) + ((uint32_t)now.tv_nsec == number(data + 16));
  free(block);
  if (equal) return 0;
#endif
#ifdef FORKS
  pid_t child = fork();
  if (!child) {
    for (uint32_t i = 0; i < 5000; i++)
      if (number(data + 4) == i * 77) _exit(1);
    _exit(0);
  }
  waitpid(child, NULL, 0);
#endif
#ifdef UNLOADS
  void *library = dlopen(getenv("PART"), RTLD_NOW);
  if (!library) abort();
  *(void **)&check = dlsym(library, "part");
#endif
  int is_good = check(number(data + 4));
#ifdef UNLOADS
  dlclose(library);
#endif
  if (is_good && number(data + 8) == SECOND) abort();
  return 0;
}
#endif
