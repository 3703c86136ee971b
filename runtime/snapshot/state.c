/* See state.h. */
#define _GNU_SOURCE
#include "snapshot/state.h"

#if FFUZZ_HAS_SNAPSHOTS
#include <sys/syscall.h>

#include "runs.h"

HIDDEN struct saved *ffuzz_saved;
HIDDEN struct changes *ffuzz_changes;

HIDDEN void ffuzz_give_up(enum ffuzz_why why, long detail) {
  /* What stands in the way may have come with the prologue. */
  if (why > FFUZZ_WHY_RUN && ffuzz_saved && ffuzz_saved->prologue) why = FFUZZ_WHY_PROLOGUE, detail = 0;
  ffuzz_runs->detail = (uint32_t)detail;
  __atomic_store_n(&ffuzz_runs->why, (uint32_t)why, __ATOMIC_RELEASE);
  for (;;) CALL(exit_group, 0);
}
#endif
