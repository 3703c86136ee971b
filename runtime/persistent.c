/* __AFL_LOOP(n). In an object of its own because fuzzers look for the marker. */
#define _GNU_SOURCE
#include <signal.h>

#include "persistent.h"
#include "edge-map.h"
#include "process.h"
#include "replay.h"
#include "runs.h"

__attribute__((used)) static const char marker[] = "##SIG_AFL_PERSISTENT##";

/* True while there is one more input to run. Between two inputs the process stands still, stopped
 * by itself; the fuzzer reads and clears the maps in that time. */
int __afl_persistent_loop(unsigned int most) {
  static unsigned int left;
  static int begun;
  static unsigned int replayed, to_replay;
  __asm__ volatile("" : : "r"(marker));
  if (ffuzz_runs && ffuzz_persistent) return ffuzz_next_case(most);
  if (!begun) {
    begun = 1;
    ffuzz_iteration++;
    left = ffuzz_persistent ? most : 1;
    if (ffuzz_persistent) ffuzz_run_begins();
    to_replay = ffuzz_replay_count();
    if (to_replay) ffuzz_replay_input(0, to_replay);
    return 1;
  }
  if (replayed < to_replay) {
    ffuzz_replay_input(++replayed, to_replay);
    ffuzz_iteration++;
    return 1;
  }
  if (left == 0) return 0;
  if (--left == 0) {
    /* What a rejected run still does until its process ends is not seen either. */
    if (ffuzz_persistent || (ffuzz_run_is_rejected() && !ffuzz_lasting)) ffuzz_run_is_over();
    return 0;
  }
  ffuzz_run_ends();
  raise(SIGSTOP);
  ffuzz_iteration++;
  ffuzz_run_goes_on();
  return 1;
}
