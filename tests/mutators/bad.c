// What a mutator must not do; -DWHAT=NAME chooses one.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../include/ffuzz-mutator.h"

#define LONGER 1
#define WILD 2
#define OWN 3
#define NONE 4
#define PRINTS 5
#define SLOW 6
#define CRASHES 7
#define NULL_INIT 8
#define ENDS 9
#define SYMBOL 10
#define HALF_TRIM 11
#define NO_HOOK 12
#define DROPS 13
#define ABORTS 14
#define LEAVES 15
#define STUCK 16
#define STUCK_AT_END 17
#define STUCK_AT_INIT 18
#define STUCK_AFTER 19

#ifndef NO_INIT
void *afl_custom_init(void *afl, unsigned int seed) {
  (void)afl, (void)seed;
#if WHAT == NULL_INIT
  return NULL;
#elif WHAT == ENDS
  exit(7);
#elif WHAT == STUCK_AT_INIT
  for (;;) pause();
#elif WHAT == SYMBOL
  extern unsigned rand_next(void *);
  return (void *)(size_t)rand_next(afl);
#elif WHAT == PRINTS
  printf("printed by init\n");
#endif
  static int data;
  return &data;
}
#endif

void afl_custom_deinit(void *data) {
  (void)data;
#if WHAT == STUCK_AT_END
  for (;;) pause();
#endif
}

#if WHAT == HALF_TRIM
int32_t afl_custom_init_trim(void *data, uint8_t *buf, size_t size) {
  (void)data, (void)buf, (void)size;
  return 1;
}
#endif

#if WHAT == DROPS
size_t afl_custom_post_process(void *data, uint8_t *buf, size_t size, uint8_t **out_buf) {
  (void)data, (void)buf, (void)size;
  *out_buf = NULL;
  return 0;
}
#elif WHAT == STUCK_AFTER
size_t afl_custom_post_process(void *data, uint8_t *buf, size_t size, uint8_t **out_buf) {
  static int calls;
  (void)data;
  if (++calls == 100)
    for (;;) pause();
  *out_buf = buf;
  return size;
}
#elif WHAT != NO_HOOK
static uint8_t large[(1 << 20) + 64];

size_t afl_custom_fuzz(void *data, uint8_t *buf, size_t size, uint8_t **out_buf, uint8_t *add,
                       size_t add_size, size_t max) {
  (void)data, (void)add, (void)add_size, (void)max;
  memcpy(large, buf, size);
  *out_buf = large;
#if WHAT == LONGER
  return max + 64 <= sizeof large ? max + 64 : sizeof large;
#elif WHAT == WILD
  return (size_t)-1;
#elif WHAT == OWN
  *out_buf = buf;
  return size + 1000;
#elif WHAT == NONE
  *out_buf = NULL;
  return size;
#elif WHAT == PRINTS
  printf("printed by fuzz\n");
  fflush(stdout);
#elif WHAT == SLOW
  static int before;
  // Time passes only here; the test waits for the warning.
  if (!before++) sleep(7);
#elif WHAT == CRASHES
  static int calls;
  if (++calls == 100) *(volatile int *)8 = 1;
#elif WHAT == ABORTS
  abort();
#elif WHAT == LEAVES
  static int calls;
  if (++calls == 100) _exit(0);
#elif WHAT == STUCK
  static int calls;
  if (++calls == 20)
    for (;;) pause();
#endif
  return size;
}
#endif
