/* Begins with something that depends on the time, as a random number from the clock does; a slice has 50 ms. */
#include <time.h>
#include <unistd.h>

int main(void) {
  volatile int turns = 0;
  char text[16] = "";
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  for (time_t left = (now.tv_sec * 20 + now.tv_nsec / 50000000) % 13; left >= 0; left--) turns++;
  if (read(0, text, sizeof text) < 0) return 1;
  return text[0] == 'x' && text[1] == 'y';
}
