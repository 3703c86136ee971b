/* Crashes on an input that begins with F, but only if it is run as a campaign has run it: through a file with the
 * extension .png, through the file work.in, with MODE=on, or with the library placed-lib.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((weak)) int is_loaded(void);

static int is_on(void) {
  const char *mode = getenv("MODE");
  return mode && !strcmp(mode, "on now");
}

int main(int argc, char **argv) {
  const char *how = argv[1], *name = argc > 2 ? argv[2] : "work.in", *end = strrchr(name, '.');
  if (!strcmp(how, "extension") && (!end || strcmp(end, ".png"))) return 1;
  if (!strcmp(how, "variable") && !is_on()) return 1;
  if (!strcmp(how, "library") && (!is_loaded || !is_loaded())) return 1;
  FILE *file = fopen(name, "r");
  if (!file) return 1;
  if (getc(file) == 'F') abort();
  return 0;
}
