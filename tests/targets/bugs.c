/* One bug for each letter that an input may begin with; the second byte is a number for some. */
#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ALONE __attribute__((noinline))

static volatile char sink;

ALONE static void read_behind(char *block, int at) { sink = block[at]; }
ALONE static void write_behind(char *block, int at) { block[at] = 1; }
ALONE static void use_freed(char *block) {
  free(block);
  sink = *(volatile char *)block;
}
ALONE static void poke_null(int at) { *(volatile char *)(long)at = 1; }
ALONE static void check(int value) { assert(value > 1000); }
ALONE static void give_up(void) { abort(); }
ALONE static void spin(void) {
  for (;;) sink = 1;
}
ALONE static void talk_much(void) {
  static char line[1 << 16];
  memset(line, 'x', sizeof line - 1);
  line[sizeof line - 1] = '\n';
  puts("first words");
  fflush(stdout);
  for (int i = 0; i < 1600; i++) {
    if (write(1, line, sizeof line) < 0) return;
    if (write(2, line, sizeof line) < 0) return;
  }
  fputs("last words\n", stderr);
  abort();
}
ALONE static void talk_bytes(void) {
  static const char bytes[] = "\xff\xfe caf\xe9 \0 end\n";
  fwrite(bytes, 1, sizeof bytes, stderr);
  abort();
}
ALONE static void sometimes(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (now.tv_nsec / 100 & 1) abort();
}
ALONE static void leave_child(void) {
  if (fork() == 0) {
    sleep(1000);
    _exit(0);
  }
  abort();
}
ALONE static void quietly(void) {
  close(1);
  close(2);
  abort();
}

static void take(const unsigned char *data, size_t size) {
  char *block = malloc(8);
  int number = size > 1 ? data[1] & 7 : 0;
  switch (size ? data[0] : 0) {
    case 'o': read_behind(block, 8 + number); break;
    case 'w': write_behind(block, 8 + number); break;
    case 'f': use_freed(block); return;
    case 'n': poke_null(number); break;
    case 'a': check(number); break;
    case 'g': give_up(); break;
    case 'h': spin(); break;
    case 'p': talk_much(); break;
    case 'u': talk_bytes(); break;
    case 'r': sometimes(); break;
    case 'c': leave_child(); break;
    case 'q': quietly(); break;
    case 'T': raise(SIGTERM); break;
  }
  free(block);
}

#if defined(DRIVER)
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) {
  take(data, size);
  return 0;
}
#elif defined(SHARED)
__AFL_FUZZ_INIT();
int main(void) {
  unsigned char *data = __AFL_FUZZ_TESTCASE_BUF;
  while (__AFL_LOOP(1000)) take(data, __AFL_FUZZ_TESTCASE_LEN);
  return 0;
}
#else
int main(int argc, char **argv) {
  unsigned char data[256];
  FILE *file = argc > 1 ? fopen(argv[argc - 1], "rb") : stdin;
  if (!file) return 9;
  take(data, fread(data, 1, sizeof data, file));
  return 0;
}
#endif
