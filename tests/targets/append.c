// Appends each input as a line to the file that is named first; `module-7` is a crash. With FROM_FILE the
// input is the file `sent`.
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef __AFL_LOOP
#define __AFL_LOOP(n) (!done++)
static int done;
#endif

int main(int argc, char **argv) {
  static char input[4096];
  while (__AFL_LOOP(1000)) {
#ifdef FROM_FILE
    int file = open("sent", O_RDONLY);
    ssize_t length = read(file, input, sizeof input - 1);
    close(file);
#else
    ssize_t length = read(0, input, sizeof input - 1);
#endif
    if (length < 0 || argc < 2) return 1;
    input[length++] = '\n';
    int log = open(argv[1], O_WRONLY | O_APPEND | O_CREAT, 0600);
    if (log < 0 || write(log, input, length) != length) return 2;
    close(log);
    if (length == 9 && !memcmp(input, "module-7", 8)) abort();
  }
  return 0;
}
