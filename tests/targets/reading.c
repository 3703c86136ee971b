/* Reads its input in the way that its first argument names, and crashes on "FUZZ" only. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const unsigned char *mapped(int fd) {
  void *data = mmap(0, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
  return data == MAP_FAILED ? (const unsigned char *)"" : data;
}

int main(int argc, char **argv) {
  static unsigned char buffer[4096];
  const unsigned char *data = buffer;
  const char *how = argc > 1 ? argv[1] : "", *file = argc > 2 ? argv[2] : "";
  if (!strcmp(how, "mmap")) {
    data = mapped(0);
  } else if (!strcmp(how, "pread")) {
    if (pread(0, buffer, sizeof buffer - 1, 0) < 0) return 1;
  } else if (!strcmp(how, "open") || !strcmp(how, "file")) {
    FILE *stream = fopen(*file ? file : "/dev/stdin", "rb");
    if (!stream || fread(buffer, 1, sizeof buffer - 1, stream) == 0) return 1;
    fclose(stream);
  } else if (!strcmp(how, "file-mmap")) {
    data = mapped(open(file, O_RDONLY));
  }
  if (data[0] == 'F' && data[1] == 'U' && data[2] == 'Z' && data[3] == 'Z') abort();
  return 0;
}
