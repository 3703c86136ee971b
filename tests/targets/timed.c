/* Begins with something that depends on the second, as a random number from the clock does. */
#include <time.h>
#include <unistd.h>

int main(void) {
  volatile int turns = 0;
  char text[16] = "";
  for (time_t left = time(NULL) % 13; left >= 0; left--) turns++;
  if (read(0, text, sizeof text) < 0) return 1;
  return text[0] == 'x' && text[1] == 'y';
}
