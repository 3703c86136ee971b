/* Takes its time: MILLISECONDS a run, in a loop with test cases in shared memory. Each run adds a byte to the file
 * that its argument names. */
#include <fcntl.h>
#include <unistd.h>

#ifndef MILLISECONDS
#define MILLISECONDS 200
#endif

__AFL_FUZZ_INIT();

int main(int argc, char **argv) {
  int log = open(argc > 1 ? argv[1] : "/dev/null", O_CREAT | O_APPEND | O_WRONLY, 0600);
  __AFL_INIT();
  unsigned char *data = __AFL_FUZZ_TESTCASE_BUF;
  while (__AFL_LOOP(1000)) {
    if (write(log, data, 1) < 0) return 1;
    usleep(MILLISECONDS * 1000);
  }
  return 0;
}
