/* Fills all memory that it shares with the byte of its argument, in each run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 64

int main(int argc, char **argv) {
  static struct {
    char *from, *to;
  } shared[MOST];
  char line[512], access[8];
  int count = 0;
  FILE *maps = fopen("/proc/self/maps", "r");
  while (maps && count < MOST && fgets(line, sizeof line, maps)) {
    void *from, *to;
    if (sscanf(line, "%p-%p %7s", &from, &to, access) != 3 || strcmp(access, "rw-s")) continue;
    shared[count].from = from;
    shared[count++].to = to;
  }
  getchar();
  for (int i = 0; i < count; i++) memset(shared[i].from, argc > 1 ? atoi(argv[1]) : 0xff, (size_t)(shared[i].to - shared[i].from));
  return 0;
}
