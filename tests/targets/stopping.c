/* Stops itself on every input, and does not end with its fork server, as children of AFL's runtimes: nothing but a
 * signal ends it. */
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(void) {
  char data[1];
  prctl(PR_SET_PDEATHSIG, 0);
  if (read(0, data, 1) == 1) raise(SIGSTOP);
  return 0;
}
