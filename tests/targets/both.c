/* Reads behind its memory if the input begins with "A" and continues with "B": both are edges that other inputs hit,
 * and nothing shows without a sanitizer. "C" crashes in any build. With -DLOOP it is a persistent loop. With -DDIES a
 * run with "A" ends the process for good: it does not start in this folder any more. */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef LOOP
__AFL_FUZZ_INIT();
#endif

static volatile char sink;

__attribute__((noinline)) static void reads_behind(char *memory, int at) { sink = memory[at]; }

static void take(const uint8_t *data, long size) {
  char *memory = calloc(1, 2);
  volatile int at = 0;
  if (!memory || size < 2) return free(memory);
#ifdef DIES
  if (data[0] == 'A') close(open("gone", O_CREAT | O_WRONLY, 0600)), kill(getppid(), SIGKILL);
#endif
  if (data[0] == 'A') at++;
  if (data[1] == 'B') at++;
  if (data[0] == 'C') abort();
  reads_behind(memory, at);
  free(memory);
}

#ifdef DIES
static void start(void) {
  if (access("gone", F_OK) == 0) _exit(1);
}
/* Before the fork server. */
__attribute__((section(".preinit_array"), used)) static void (*const first)(void) = start;
#endif

int main(void) {
#ifdef LOOP
  __AFL_INIT();
  unsigned char *data = __AFL_FUZZ_TESTCASE_BUF;
  while (__AFL_LOOP(1000)) take(data, __AFL_FUZZ_TESTCASE_LEN);
#else
  uint8_t data[8] = {0};
  take(data, read(0, data, sizeof data));
#endif
  return 0;
}
