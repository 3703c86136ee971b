/* Lines that inputs reach or do not: the number behind a line says how many of `a`, `((1)` and `ac` do, or
 * at least how many are known to. */
#include <stdio.h>
#include <stdlib.h>

static int depth(const char *text) {
  int depth = 0;          /* 1 */
  for (; *text; text++) { /* 1 */
    if (*text == '(')     /* 1 */
      depth++;            /* 1 */
    if (*text == '[')     /* 1 */
      depth += 2;         /* 0 */
  }
  return depth; /* 1 */
}

static void never(void) {
  puts("never"); /* 0 */
}

int main(void) {
  char line[64] = {0};                  /* 3 */
  if (!fgets(line, sizeof line, stdin)) /* 3 */
    return 1;                           /* 0 */
  if (line[0] == 'a') {                 /* 3 */
    puts("starts with a");              /* 2 */
    if (line[1] == 'b')                 /* 2 */
      puts("and b");                    /* 0 */
    else if (line[1] == 'c')            /* 2 */
      puts("and c");                    /* 1 */
  }
  switch (line[0]) {
    case '(':
      printf("%d\n", depth(line)); /* 1 */
      break;                       /* 1 */
    case 'x':
      exit(3); /* 0 */
    case 'n':
      never(); /* 0 */
      break;   /* 0 */
    default:
      puts("other"); /* 2 */
  }
  puts("end"); /* 3 */
  return 0;
}
