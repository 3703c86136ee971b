/* A block that is used after it was freed (`F`), and one that is written behind its end (`O`). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *copy(const char *line) {
  return strcpy(malloc(strlen(line) + 1), line);
}

static int used_after(char *text) {
  free(text);
  return text[0];
}

static void written_behind(char *text) {
  text[strlen(text) + 1] = 1;
}

int main(void) {
  char line[64];
  if (!fgets(line, sizeof line, stdin)) return 1;
  char *text = copy(line);
  if (line[0] == 'F') return used_after(text);
  if (line[0] == 'O') written_behind(text);
  free(text);
  return 0;
}
