/* __AFL_INIT(). In an object of its own because fuzzers look for the marker. */
#include "manual.h"
#include "forkserver.h"
#include "process.h"
#include "snapshot/snapshot.h"

__attribute__((used)) static const char marker[] = "##SIG_AFL_DEFER_FORKSRV##";

void __afl_manual_init(void) {
  __asm__ volatile("" : : "r"(marker));
  ffuzz_start_server();
  if (ffuzz_lasting) ffuzz_snapshot();
}
