/* Edges hit as often as the first byte says, one more with any second byte that is even, and a map of
 * the bytes behind it. With a "hang" file in the folder of the run, an input that begins with 'Q' waits
 * until that is gone, and makes a file "hung"; one that begins with 'Z' aborts. An ordinary program, or with -DHARNESS a harness. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef KEYS
#include "waypoints.h"
FUZZFACTORY_DSF_NEW(most, 16, FUZZFACTORY_REDUCER_MAX, 0);
#endif

__attribute__((noinline)) static void often(void) { __asm__ volatile(""); }

static int look(const unsigned char *data, ssize_t size) {
  if (size < 1) return 0;
  if (data[0] == 'Z') abort();
  if (data[0] == 'Q')
    while (access("hang", F_OK) == 0) {
      close(creat("hung", 0600));
      usleep(1000);
    }
  for (int i = 0; i < data[0]; i++) often();
  if (size > 1 && data[1] % 2 == 0) puts("even");
#ifdef KEYS
  for (ssize_t i = 2; i < size; i++) FUZZFACTORY_DSF_MAX(most, i % 16, data[i]);
#endif
  return 0;
}

#ifdef HARNESS
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) { return look(data, (ssize_t)size); }
#else
int main(void) {
  static unsigned char data[4096];
  return look(data, read(0, data, sizeof data));
}
#endif
