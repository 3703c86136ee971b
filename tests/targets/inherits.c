/* Crashes if it has inherited the descriptor 9, or a token of the job that has started the fuzzer. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int main(void) {
  char b[8] = {0};
  if (fcntl(9, F_GETFD) >= 0 || getenv("GITHUB_TOKEN") || getenv("FM_CONFIG_PATH")) abort();
  return read(0, b, 8) > 0 && b[0] == 'x';
}
