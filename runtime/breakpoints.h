/* Coverage by breakpoints, of a program that has no counters: what the other parts have to know of it. A program of
 * ffuzz-cc has none; runtime/native/ has the rest. */
#ifndef FFUZZ_BREAKPOINTS_H
#define FFUZZ_BREAKPOINTS_H

#include "base.h"

struct breakpoints {
  void (*start)(void); /* right before main: all are set, the map is known */
  /* The rest follows the rules of snapshot/state.h. */
  int (*is_code)(uint64_t start, uint64_t end); /* these pages have breakpoints, which stay as they are between runs */
  int (*were_met)(void);                        /* since the last call of forget_met, which all runs begin after */
  void (*forget_met)(void);
  void (*set_all)(void);
  void (*remove_all)(void);
  void (*remove_known)(const uint8_t *virgin); /* those of blocks that the map of unseen hit counts lacks */
};

/* NULL if there are none. */
HIDDEN extern const struct breakpoints *ffuzz_breakpoints;

#endif
