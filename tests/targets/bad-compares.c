/* A gate whose operand is calculated, behind comparisons that no log can be relied on for: the first letter of $HOW
   says which. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Times, addresses, and a number that is another one in every eighth run. */
static int noise(void) {
  static unsigned runs;
  struct timespec now;
  void *place = malloc(16);
  clock_gettime(CLOCK_REALTIME, &now);
  int seen = now.tv_nsec == 123456789;
  seen += (uintptr_t)place == 0x11112222;
  seen += ++runs / 8 == 0x44445555;
  seen += (uint32_t)getpid() == 0x66667777;
  free(place);
  return seen;
}

/* A child compares as well, into the same log. */
static int fork_child(const uint8_t *data) {
  pid_t child = fork();
  if (!child) {
    volatile int seen = 0;
    for (int i = 0; i < 100; i++) seen += data[i % 8] * 3 == 1000 + i;
    _exit(0);
  }
  return child > 0 && waitpid(child, NULL, 0) == child;
}

static int compare_for_ever(const uint8_t *data) {
  volatile unsigned count = 0;
  while (data[0] == 'L') count += count * 5 + data[1] == 0x77778888;
  return 1;
}

static int ask_library(const uint8_t *data) {
  void *library = dlopen(getenv("LIBRARY"), RTLD_NOW);
  int (*check)(const uint8_t *) = library ? (int (*)(const uint8_t *))dlsym(library, "check") : NULL;
  int seen = check && check(data);
  if (library) dlclose(library);
  return seen;
}

/* The compiler does not know it: the operand is no copy of the input. */
static volatile uint32_t factor = 5;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const char *how = getenv("HOW");
  uint32_t word;
  if (size < 8 || !how) return 0;
  if (how[0] == 'n' && noise()) return 1;
  if (how[0] == 'f' && !fork_child(data)) return 1;
  if (how[0] == 'l' && !compare_for_ever(data)) return 1;
  if (how[0] == 'u' && !ask_library(data)) return 1;
  memcpy(&word, data + 4, 4);
  if (word * factor + 3 == 0x12345678u * 5 + 3) abort();
  return 0;
}
