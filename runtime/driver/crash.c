/* The end of a harness that was started by hand: libFuzzer's lines and exit codes. Sanitizers tell us by their callback
 * and end by their own code, all else is signals. One input from standard input ends the harness by its own signal, as
 * AFL++'s driver does. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "driver/crash.h"
#include "driver/options.h"
#include "driver/report.h"
#include "memory.h"
#include "process.h"

#define INTERRUPTED_CODE 72
#define STACK_BYTES 65536

__attribute__((weak)) void __sanitizer_set_death_callback(void (*)(void));
__attribute__((weak)) void __sanitizer_print_stack_trace(void);

static const uint8_t *volatile data;
static volatile size_t size;
static volatile double begun;
static volatile int is_to_end;

HIDDEN void ffuzz_driver_input(const uint8_t *new_data, size_t new_size) {
  size = new_size;
  begun = ffuzz_driver_seconds();
  data = new_data;
}

HIDDEN double ffuzz_driver_running(void) { return data ? ffuzz_driver_seconds() - begun : -1; }

HIDDEN int ffuzz_driver_is_to_end(void) { return is_to_end; }

/* Once: what ends the harness may crash itself. */
static int is_first(void) {
  static int ends;
  return !__atomic_exchange_n(&ends, 1, __ATOMIC_SEQ_CST);
}

static void save(const char *kind) {
  if (data) ffuzz_driver_save_last(kind, data, size);
}

static void describe(const char *what) {
  ffuzz_driver_print("==%ld== ERROR: libFuzzer: %s\n", (long)getpid(), what);
  if (__sanitizer_print_stack_trace) __sanitizer_print_stack_trace();
}

HIDDEN void ffuzz_driver_end(const char *kind, const char *what, const char *summary, long code) {
  if (!is_first()) _exit((int)code);
  describe(what);
  ffuzz_driver_print("\nSUMMARY: libFuzzer: %s\n", summary);
  save(kind);
  ffuzz_driver_statistics();
  _exit((int)code);
}

static void end_by(int number) {
  sigset_t just_this;
  signal(number, SIG_DFL);
  sigemptyset(&just_this);
  sigaddset(&just_this, number);
  sigprocmask(SIG_UNBLOCK, &just_this, NULL);
  syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), number);
}

static void on_fatal_signal(int number) {
  if (!is_first()) {
    end_by(number);
    return;
  }
  describe("deadly signal");
  ffuzz_driver_print("NOTE: libFuzzer has rudimentary signal handlers.\n"
                     "      Combine libFuzzer with AddressSanitizer or similar for better crash reports.\n"
                     "SUMMARY: libFuzzer: deadly signal\n");
  if (ffuzz_driver.is_one_input) {
    end_by(number);
    return;
  }
  save("crash");
  ffuzz_driver_statistics();
  _exit((int)ffuzz_driver.error_exitcode);
}

/* Under a fuzzer a signal: an exit code is no crash there. */
HIDDEN void ffuzz_driver_overwritten(void) {
  const char *what = "fuzz target overwrites its const input", *summary = "overwrites-const-input";
  if (!ffuzz_under_fuzzer) ffuzz_driver_end("crash", what, summary, ffuzz_driver.error_exitcode);
  fprintf(stderr, "==%ld== ERROR: libFuzzer: %s\nSUMMARY: libFuzzer: %s\n", (long)getpid(), what, summary);
  abort();
}

static void on_sanitizer_death(void) {
  if (!data || !is_first()) return;
  save("crash");
  ffuzz_driver_statistics();
}

static void on_exit_of_program(void) {
  if (!data || ffuzz_driver.is_one_input) return;
  ffuzz_driver_end("crash", "fuzz target exited", "fuzz target exited", ffuzz_driver.error_exitcode);
}

static void on_interrupt(int number) {
  (void)number;
  ffuzz_driver_print("==%ld== libFuzzer: run interrupted; exiting\n", (long)getpid());
  ffuzz_driver_statistics();
  _exit(INTERRUPTED_CODE);
}

static void on_large_file(int number) {
  (void)number;
  ffuzz_driver_print("==%ld== ERROR: libFuzzer: file size exceeded\n", (long)getpid());
  _exit((int)ffuzz_driver.error_exitcode);
}

static void on_request_to_end(int number) {
  (void)number;
  is_to_end = 1;
}

static void handle(int number, long is_wanted, void (*handler)(int)) {
  struct sigaction ours = {.sa_handler = handler, .sa_flags = SA_ONSTACK}, theirs;
  sigemptyset(&ours.sa_mask);
  /* A handler that is already there (a sanitizer's) stays, and so does `nohup`. */
  if (!is_wanted || sigaction(number, NULL, &theirs) || theirs.sa_handler != SIG_DFL) return;
  sigaction(number, &ours, NULL);
}

/* On a stack of its own, so that a stack overflow is seen too. */
HIDDEN void ffuzz_driver_watch(void) {
  stack_t stack = {.ss_sp = ffuzz_pages(STACK_BYTES), .ss_size = STACK_BYTES}, old_stack;
  if (sigaltstack(NULL, &old_stack) == 0 && (old_stack.ss_flags & SS_DISABLE)) sigaltstack(&stack, NULL);
  handle(SIGSEGV, ffuzz_driver.handle_segv, on_fatal_signal);
  handle(SIGBUS, ffuzz_driver.handle_bus, on_fatal_signal);
  handle(SIGABRT, ffuzz_driver.handle_abrt, on_fatal_signal);
  handle(SIGILL, ffuzz_driver.handle_ill, on_fatal_signal);
  handle(SIGFPE, ffuzz_driver.handle_fpe, on_fatal_signal);
  handle(SIGTRAP, ffuzz_driver.handle_trap, on_fatal_signal);
  handle(SIGSYS, 1, on_fatal_signal);
  if (__sanitizer_set_death_callback) __sanitizer_set_death_callback(on_sanitizer_death);
  atexit(on_exit_of_program);
  if (ffuzz_driver.is_one_input) return;
  handle(SIGINT, ffuzz_driver.handle_int, on_interrupt);
  handle(SIGTERM, ffuzz_driver.handle_term, on_interrupt);
  handle(SIGXFSZ, ffuzz_driver.handle_xfsz, on_large_file);
  handle(SIGUSR1, ffuzz_driver.handle_usr1, on_request_to_end);
  handle(SIGUSR2, ffuzz_driver.handle_usr2, on_request_to_end);
}
