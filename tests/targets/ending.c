/* Functions whose first block ends in a call that does not return: one for each letter. */
#include <assert.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

static jmp_buf back;

__attribute__((noreturn)) static void die(const char *why) {
  fprintf(stderr, "died: %s\n", why);
  fflush(stderr);
  exit(3);
}

static void quit(void) {
  puts("bye");
  exit(0);
}

void never_called(void) {
  puts("never");
  exit(4);
}

static void usage(int number) {
  printf("usage: %d\n", number);
  die("usage");
}

static void jump(void) {
  puts("jump");
  longjmp(back, 1);
}

static int choose(int letter) {
  if (letter == 'e')
    exit(0);
  if (letter > 'p') {
    puts("late");
    if (letter == 'z')
      puts("last");
    else
      puts("not last");
  }
  return letter;
}

int main(void) {
  char text[8] = {0};
  if (!fgets(text, sizeof text, stdin))
    die("no input");
  if (text[0] == 'q')
    quit();
  if (text[0] == 'u')
    usage(7);
  if (text[0] == 'j') {
    if (!setjmp(back))
      jump();
    puts("landed");
  }
  printf("%d\n", choose(text[0]));
  puts("ok");
  return 0;
}
