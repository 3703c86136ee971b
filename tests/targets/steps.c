/* Crashes on "QUIZ", letter by letter, in fork mode, in a persistent loop (-DPERSISTENT) or with
 * test cases in shared memory (-DSHARED). Any AFL compiler builds it. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef SHARED
__AFL_FUZZ_INIT();
#endif

static volatile int depth; /* keeps the compiler from making one branch of four */
/* Read from memory: the word is no constant that a compiler could put into a dictionary. */
static const volatile unsigned char quiz[] = {'Q', 'U', 'I', 'Z'};

__attribute__((noinline)) static void look(const unsigned char *data, long length) {
  if (length < 4 || data[0] != quiz[0]) return;
  depth = 1;
  if (data[1] != quiz[1]) return;
  depth = 2;
  if (data[2] != quiz[2]) return;
  depth = 3;
  if (data[3] == quiz[3]) abort();
}

int main(void) {
#ifdef SHARED
  __AFL_INIT();
  unsigned char *data = __AFL_FUZZ_TESTCASE_BUF;
  while (__AFL_LOOP(1000)) look(data, __AFL_FUZZ_TESTCASE_LEN);
#else
  static unsigned char data[64];
#ifdef PERSISTENT
  while (__AFL_LOOP(1000))
#endif
    look(data, (long)read(0, data, sizeof data));
#endif
  return 0;
}
