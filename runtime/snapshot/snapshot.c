/* The beginning of all snapshots: the process is made ready for them. The rules for this code are in state.h. */
#define _GNU_SOURCE
#include "snapshot/snapshot.h"
#include "process.h"
#include "snapshot/state.h"

#if FFUZZ_HAS_SNAPSHOTS
#include <malloc.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "runs.h"
#include "snapshot/cycle.h"
#include "snapshot/mappings.h"
#include "snapshot/prologue.h"
#include "snapshot/take.h"

/* Blocks up to that are usual: the buffer of a stream is one. */
#define USUAL_BLOCK 5000u
/* Too large for the caches of glibc's allocator: once it is free again it is as if it had never been there, so blocks lie
 * where they lie with fork. Loops that ask whether two of them overlap go the same way then. */
#define UNCACHED_BLOCK 2048u

extern void __asan_get_shadow_mapping(size_t *, size_t *) __attribute__((weak));

/* musl has none. */
extern __typeof__(mallopt) mallopt __attribute__((weak));

static void touch_heap(size_t size) {
  void *volatile block = malloc(size);
  free(block);
}

/* The heap's first pages are there before the first run: what is put back is cheaper than what comes and goes.
 * Of libc's no more than it takes at first, so that a write far behind a block is still one behind the heap;
 * and it does not end before where it ends now. A sanitizer maps memory when a class of sizes is first asked for:
 * each class that a run asks for first costs traps and faults, each that is there costs scans, so the usual ones
 * are there. */
static void begin_heap(void) {
  if ((!&mallopt || !mallopt(M_TRIM_THRESHOLD, INT32_MAX)) && !&__asan_get_shadow_mapping) return;
  touch_heap(UNCACHED_BLOCK);
  if (!&__asan_get_shadow_mapping) return;
  for (size_t size = 32; size < USUAL_BLOCK; size += size < 256 ? 32 : size / 2) touch_heap(size);
}

/* glibc registers an area in thread-local memory where the kernel writes which core a thread is on: put
 * back, it would lie. Without it glibc asks the kernel (rseq(2)). */
static void stop_rseq(void) {
  extern const unsigned __rseq_size __attribute__((weak));
  extern const ptrdiff_t __rseq_offset __attribute__((weak));
  if (!&__rseq_size || !__rseq_size) return;
  long area = (long)__builtin_thread_pointer() + __rseq_offset, error = 0;
  for (long bytes = 32; bytes <= 256; bytes += 32) {
    error = CALL(rseq, area, bytes, 1 /* RSEQ_FLAG_UNREGISTER */, MACHINE_RSEQ_SIGNATURE);
    if (!error) return;
  }
  ffuzz_give_up(FFUZZ_WHY_RSEQ, -error);
}

static void ask_sanitizer(void) {
  size_t scale = 0, offset = 0;
  if (&__asan_get_shadow_mapping) __asan_get_shadow_mapping(&scale, &offset);
  ffuzz_saved->shadow = (struct shadow){scale, offset};
}

HIDDEN void ffuzz_snapshot_reserve(void) { ffuzz_memory_reserve(); }

/* Returns before each run, or once if the runs begin later. */
HIDDEN void ffuzz_snapshot(void) {
  ffuzz_lasting = 0;
  /* A huge page would be copied as a whole. */
  CALL(prctl, PR_SET_THP_DISABLE, 1);
  begin_heap();
  stop_rseq();
  ffuzz_memory_start();
  ask_sanitizer();
  if (!ffuzz_prologue_begins()) ffuzz_snapshot_take();
}

/* For the stand-in for the network: the input of this run lies in the channel. 0: it has to read its file.
 *
 * If all inputs of this process begin with the same messages, the first answer says how many bytes these have
 * (`shared`), and what is behind them is asked for once more. The last question is the first use of the input, so the
 * snapshot is taken there. */
int __ffuzz_net_input(const uint8_t **bytes, uint32_t *length, uint32_t *shared) {
  if (!ffuzz_saved || !ffuzz_input || ffuzz_input->kind != FFUZZ_INPUT_NET) return 0;
  if (ffuzz_saved->is_starting && !ffuzz_saved->has_prefix && ffuzz_runs->prefix) {
    ffuzz_saved->has_prefix = 1;
    *shared = ffuzz_runs->prefix;
    *bytes = ffuzz_case_bytes(0, length);
    return 1;
  }
  ffuzz_prologue_stops();
  if (!ffuzz_is_put_back()) return 0;
  *bytes = ffuzz_case_bytes(ffuzz_runs->started - 1, length);
  return 1;
}

#else
HIDDEN void ffuzz_snapshot_reserve(void) {}
HIDDEN void ffuzz_snapshot(void) { ffuzz_lasting = 0; }
int __ffuzz_net_input(const uint8_t **bytes, uint32_t *length, uint32_t *shared) {
  return (void)bytes, (void)length, (void)shared, 0;
}
#endif
