/* Computes for as many milliseconds of processor time as its argument says; an input that begins with 'L' sleeps
 * instead. With LOOP, a process takes many inputs. With SHY, everything but "A" sleeps. */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void run(long milliseconds) {
  char data[2] = {0};
  ssize_t n = read(0, data, 2);
  if (n < 1) return;
  clock_t end = clock() + milliseconds * (CLOCKS_PER_SEC / 1000);
  if (data[0] == 'L') sleep(1000);
#ifdef SHY
  if (n != 1 || data[0] != 'A') sleep(1000);
#endif
  while (clock() < end) {
  }
}

int main(int argc, char **argv) {
  long milliseconds = argc > 1 ? atol(argv[1]) : 0;
#ifdef LOOP
  while (__AFL_LOOP(1000))
#endif
    run(milliseconds);
  return 0;
}
