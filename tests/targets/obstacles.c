/* What may stand in the way of the higher rungs. A run stores its first byte's class in an edge.
 *
 *   -DSTRICT  the loop forbids all system calls but read, write and exit
 *   -DLATE    the first run loads the instrumented library that LATE names
 *   -DLIMIT   the address space has 1.75 mebibytes left when the runtime starts
 *   -DMOVING  another number of counters in every start, which the file named by STARTS counts; an
 *             input that begins with k ends the fork server */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef LIMIT
__AFL_FUZZ_INIT();
#endif

static volatile int seen;

#ifdef LIMIT
__attribute__((constructor(1))) static void limit(void) {
  long pages;
  FILE *statm = fopen("/proc/self/statm", "r");
  if (!statm || fscanf(statm, "%ld", &pages) != 1) _exit(9);
  fclose(statm);
  rlim_t most = (rlim_t)(pages * 4096 + (7 << 18));
  if (setrlimit(RLIMIT_AS, &(struct rlimit){most, most})) _exit(9);
}
#endif

#ifdef MOVING
void __sanitizer_cov_8bit_counters_init(uint8_t *start, uint8_t *stop);

static uint8_t counters[1 << 20];

__attribute__((constructor(3))) static void register_counters(void) {
  int count = open(getenv("STARTS"), O_WRONLY | O_CREAT | O_APPEND, 0600);
  struct stat so_far;
  if (count < 0 || write(count, "x", 1) != 1 || fstat(count, &so_far)) _exit(9);
  close(count);
  __sanitizer_cov_8bit_counters_init(counters, counters + 4096 + 100 * (so_far.st_size % 1000));
}
#endif

static void run(const unsigned char *data, int size) {
#ifdef LATE
  static void *library;
  if (!library) library = dlopen(getenv("LATE"), RTLD_NOW);
  if (!library) abort();
#endif
#ifdef MOVING
  if (size && data[0] == 'k') kill(getppid(), SIGKILL);
#endif
  if (size && data[0] == 'a') seen = 1;
  if (size && data[0] == 'b') seen = 2;
}

int main(void) {
#ifdef LIMIT
  static unsigned char data[16];
#else
  unsigned char *data = __AFL_FUZZ_TESTCASE_BUF;
#endif
#ifdef STRICT
  int first = 1;
#endif
  while (__AFL_LOOP(1000)) {
#ifdef STRICT
    if (first && prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT)) abort();
    first = 0;
#endif
#ifdef LIMIT
    run(data, (int)read(0, data, sizeof data));
#else
    run(data, __AFL_FUZZ_TESTCASE_LEN);
#endif
  }
  return 0;
}
