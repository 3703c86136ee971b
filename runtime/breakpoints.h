/* Coverage by breakpoints, of a program that has no counters: what the other parts have to know of it. A program of
 * ffuzz-cc has none; runtime/native/ has the rest. */
#ifndef FFUZZ_BREAKPOINTS_H
#define FFUZZ_BREAKPOINTS_H

#include "base.h"

struct breakpoints {
  void (*start)(void); /* right before main: all are set, the map is known */
  uint64_t (*absent)(int detours); /* counters that stay 0 with detours, without */
  /* The rest follows the rules of snapshot/state.h. */
  int (*is_code)(uint64_t start, uint64_t end); /* these pages have breakpoints, which stay as they are between runs */
  int (*is_shared)(uint64_t start, uint64_t end); /* these pages are shared by all processes, and clear between runs */
  void (*run_begins)(void); /* in the fork server: what was counted before belongs to no run */
  void (*run_ends)(void);   /* here, or in a child that is gone: domains have what was counted */
  int (*were_met)(void);                        /* since the last call of forget_met, which all runs begin after */
  void (*forget_met)(void);
  void (*prepare)(const uint8_t *unseen); /* the next run has all, or, if there is this map of unseen hit counts, those
                                             of blocks that no run has hit yet */
  void (*remove_all)(void);
  void (*leave_detours)(void); /* from now on blocks are counted by breakpoints alone, and all are set */
  int (*can_log)(void);
  void (*start_log)(void); /* from now on this process logs its comparisons, and shows no blocks */
};

/* NULL if there are none. */
HIDDEN extern const struct breakpoints *ffuzz_breakpoints;

#endif
