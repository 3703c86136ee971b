/* Modules whose counters are not on pages of their own (linked by gold or mold, or by somebody
 * else's linker call), or do not fit into the map of an old fuzzer: their counters are copied into the
 * map when a run ends, however it ends. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "copies.h"
#include "machine.h"
#include "memory.h"
#include "modules.h"

#define STACK_BYTES 65536

static uint8_t *target_map;
static uint64_t target_size;
static const int fatal[] = {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE};

/* Maximum and not assignment: a child of the target may have flushed before. */
HIDDEN void ffuzz_copies_flush(void) {
  uint8_t *map = target_map;
  if (!map) return;
  for (uint32_t i = 0; i < ffuzz_module_count; i++) {
    const struct module *m = &ffuzz_modules[i];
    if (m->mapped) continue;
    for (uint64_t k = 0, word; k < m->count; k++) {
      /* Counters of a program's own are many, and few are hit. */
      while (k + sizeof word <= m->count && (memcpy(&word, m->start + k, sizeof word), !word)) k += sizeof word;
      if (k == m->count || !m->start[k]) continue;
      uint8_t *place = &map[(m->at + k) % target_size];
      if (m->start[k] > *place) *place = m->start[k];
    }
  }
}

HIDDEN void ffuzz_copies_clear(void) {
  for (uint32_t i = 0; i < ffuzz_module_count; i++)
    if (!ffuzz_modules[i].mapped) memset(ffuzz_modules[i].start, 0, ffuzz_modules[i].count);
}

HIDDEN void ffuzz_copies_stop(void) { target_map = NULL; }

/* Saves the counters, then dies of the same signal as without us. */
static void on_fatal_signal(int signal_number) {
  ffuzz_copies_flush();
  signal(signal_number, SIG_DFL);
  sigset_t just_this;
  sigemptyset(&just_this);
  sigaddset(&just_this, signal_number);
  sigprocmask(SIG_UNBLOCK, &just_this, NULL);
  ffuzz_kernel(SYS_tgkill, ffuzz_kernel(SYS_getpid, 0, 0, 0, 0, 0, 0), ffuzz_kernel(SYS_gettid, 0, 0, 0, 0, 0, 0), signal_number, 0, 0, 0);
}

/* On a stack of its own, so that a stack overflow is seen too. A handler that is already there
 * (a sanitizer's) stays. */
static void watch_fatal_signals(void) {
  stack_t stack = {.ss_sp = ffuzz_pages(STACK_BYTES), .ss_size = STACK_BYTES}, old_stack;
  if (sigaltstack(NULL, &old_stack) == 0 && (old_stack.ss_flags & SS_DISABLE)) sigaltstack(&stack, NULL);
  for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++) {
    struct sigaction ours = {.sa_handler = on_fatal_signal, .sa_flags = SA_ONSTACK}, theirs;
    sigemptyset(&ours.sa_mask);
    if (sigaction(fatal[i], NULL, &theirs) || theirs.sa_handler != SIG_DFL) continue;
    sigaction(fatal[i], &ours, NULL);
  }
}

HIDDEN void ffuzz_copies_start(uint8_t *map, uint64_t size) {
  int some = 0;
  for (uint32_t i = 0; i < ffuzz_module_count; i++) some |= !ffuzz_modules[i].mapped;
  if (!some) return;
  target_map = map;
  target_size = size;
  ffuzz_copies_clear();
  atexit(ffuzz_copies_flush);
  watch_fatal_signals();
}
