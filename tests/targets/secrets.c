/* Crashes behind four comparisons: with a number of 4 and one of 8 bytes, a keyword, and bytes that are calculated.
 * It reads standard input, the file on its command line (-DNAMED), or test cases in shared memory (-DSHARED). With
 * -DDIES a run that passes the first one ends the process for good: it does not start in this folder any more. */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef SHARED
__AFL_FUZZ_INIT();
#endif

static void take(const uint8_t *data, long size) {
  uint32_t word;
  uint64_t number;
  char text[9] = "";
  uint8_t key[7];
  if (size < 32) return;
  memcpy(&word, data, 4);
  if (word != 0x4d5a9012) return;
#ifdef DIES
  close(open("gone", O_CREAT | O_WRONLY, 0600)), kill(getppid(), SIGKILL);
#endif
  memcpy(&number, data + 4, 8);
  if (number != 0x1122334455667788) return;
  memcpy(text, data + 12, 8);
  if (strcmp(text, "keyword!")) return;
  for (int i = 0; i < 7; i++) key[i] = "unknown"[i] ^ 0x21;
  if (memcmp(data + 22, key, 7)) return;
  abort();
}

#ifdef DIES
static void start(void) {
  if (access("gone", F_OK) == 0) _exit(1);
}
/* Before the fork server. */
__attribute__((section(".preinit_array"), used)) static void (*const first)(void) = start;
#endif

int main(int argc, char **argv) {
#ifdef SHARED
  unsigned char *data = __AFL_FUZZ_TESTCASE_BUF;
  while (__AFL_LOOP(1000)) take(data, __AFL_FUZZ_TESTCASE_LEN);
#else
  static uint8_t data[64];
  int file = 0;
#ifdef NAMED
  if (argc > 1) file = open(argv[1], O_RDONLY);
#endif
  take(data, read(file, data, sizeof data));
#endif
  (void)argc, (void)argv;
  return 0;
}
