/* Breakpoints of a program without instrumentation, see ../preload/start.c. */
#include <errno.h>

#include "breakpoints.h"
#include "native/blocks.h"
#include "native/compares.h"
#include "native/domains.h"
#include "native/executions.h"
#include "native/signals.h"

static void start(void) {
  int error = errno;
  ffuzz_signals_start();
  ffuzz_blocks_read();
  ffuzz_native_domains_start();
  ffuzz_blocks_arm();
  errno = error;
}

static const struct breakpoints ours = {
    .start = start,
    .absent = ffuzz_blocks_absent,
    .is_code = ffuzz_blocks_are_code,
    .is_shared = ffuzz_blocks_have_executions,
    .run_begins = ffuzz_executions_drop,
    .run_ends = ffuzz_executions_add,
    .were_met = ffuzz_blocks_were_met,
    .forget_met = ffuzz_blocks_forget_met,
    .prepare = ffuzz_blocks_prepare,
    .remove_all = ffuzz_blocks_remove_all,
    .leave_detours = ffuzz_blocks_leave_detours,
    .can_log = ffuzz_compares_are_there,
    .start_log = ffuzz_blocks_log,
};

__attribute__((constructor(3))) static void begin(void) { ffuzz_breakpoints = &ours; }
