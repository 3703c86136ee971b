/* See limits.h. Time is looked at by a signal, memory by a thread once a second and behind each run. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "driver/limits.h"
#include "driver/crash.h"
#include "driver/options.h"
#include "driver/report.h"

#define OUT_OF_MEMORY_CODE 71
/* Leaks are looked for so often: a search costs milliseconds. */
#define MOST_SEARCHES 1000

#pragma weak pthread_create
__attribute__((weak)) int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void *, size_t),
                                                                    void (*)(const volatile void *));
__attribute__((weak)) void __lsan_disable(void);
__attribute__((weak)) void __lsan_enable(void);
__attribute__((weak)) int __lsan_do_recoverable_leak_check(void);

static volatile size_t mallocs, frees;
static size_t most_bytes;
static volatile int is_running;

static void end_without_memory(const char *what) {
  char text[128];
  snprintf(text, sizeof text, "out-of-memory (%s)\n   To change the out-of-memory limit use -rss_limit_mb=<N>", what);
  ffuzz_driver_end("oom", text, "out-of-memory", OUT_OF_MEMORY_CODE);
}

/* The peak of this program alone: getrusage counts the one that has started it. */
static long own_peak_mb(void) {
  char text[4096];
  int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
  if (file >= 0) close(file);
  text[length > 0 ? length : 0] = 0;
  const char *line = strstr(text, "VmHWM:");
  return line ? atol(line + 6) >> 10 : ffuzz_driver_peak_mb();
}

static void check_memory(void) {
  char text[64];
  long limit = ffuzz_driver.rss_limit_mb, used;
  if (limit <= 0 || ffuzz_driver_peak_mb() <= limit || (used = own_peak_mb()) <= limit) return;
  snprintf(text, sizeof text, "used: %ldMb; limit: %ldMb", used, limit);
  end_without_memory(text);
}

static void *look_at_memory(void *unused) {
  struct timespec second = {1, 0};
  for (;;) {
    nanosleep(&second, NULL);
    check_memory();
  }
  return unused;
}

static void start_looking_at_memory(void) {
  pthread_t thread;
  sigset_t all, before;
  if (ffuzz_driver.rss_limit_mb <= 0 || !pthread_create) return;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, &before);
  pthread_create(&thread, NULL, look_at_memory, NULL);
  sigprocmask(SIG_SETMASK, &before, NULL);
}

static void on_alarm(int number) {
  char text[64];
  double spent = ffuzz_driver_running();
  (void)number;
  if (spent < (double)ffuzz_driver.timeout) return;
  ffuzz_driver_print("ALARM: working on the last Unit for %ld seconds\n"
                     "       and the timeout value is %ld (use -timeout=N to change)\n",
                     (long)spent, ffuzz_driver.timeout);
  snprintf(text, sizeof text, "timeout after %ld seconds", (long)spent);
  ffuzz_driver_end("timeout", text, "timeout", ffuzz_driver.timeout_exitcode);
}

static void start_alarms(void) {
  struct sigaction alarm = {.sa_handler = on_alarm, .sa_flags = SA_RESTART | SA_ONSTACK};
  long often = ffuzz_driver.timeout / 2 + 1;
  struct itimerval timer = {{often, 0}, {often, 0}};
  if (ffuzz_driver.timeout <= 0) return;
  sigemptyset(&alarm.sa_mask);
  sigaction(SIGALRM, &alarm, NULL);
  setitimer(ITIMER_REAL, &timer, NULL);
}

/* The report of an allocation that is too large allocates itself. */
static void on_malloc(const volatile void *at, size_t bytes) {
  char text[64];
  (void)at;
  if (!is_running) return;
  mallocs++;
  if (!most_bytes || bytes <= most_bytes) return;
  is_running = 0;
  snprintf(text, sizeof text, "malloc(%zu)", bytes);
  end_without_memory(text);
}

static void on_free(const volatile void *at) {
  (void)at;
  if (is_running) frees++;
}

HIDDEN void ffuzz_driver_limit(void) {
  start_alarms();
  start_looking_at_memory();
  long most = ffuzz_driver.malloc_limit_mb ? ffuzz_driver.malloc_limit_mb : ffuzz_driver.rss_limit_mb;
  most_bytes = most > 0 ? (size_t)most << 20 : 0;
  if (__sanitizer_install_malloc_and_free_hooks) __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free);
}

HIDDEN double ffuzz_driver_run(harness *test, const uint8_t *data, size_t size) {
  mallocs = frees = 0;
  ffuzz_driver_input(data, size);
  is_running = 1;
  ffuzz_driver_run_one(test, data, size);
  is_running = 0;
  double spent = ffuzz_driver_running();
  check_memory();
  ffuzz_driver_input(NULL, 0);
  if (spent > ffuzz_driver_slowest) ffuzz_driver_slowest = spent;
  ffuzz_driver_runs++;
  return spent;
}

/* The first run may allocate what stays, so the second decides; what the first leaked was not told then. */
HIDDEN void ffuzz_driver_look_for_leaks(harness *test, const uint8_t *data, size_t size) {
  static int searches;
  if (mallocs <= frees || !ffuzz_driver.detect_leaks || searches >= MOST_SEARCHES) return;
  if (!__lsan_disable || !__lsan_enable || !__lsan_do_recoverable_leak_check) return;
  __lsan_disable();
  ffuzz_driver_run(test, data, size);
  ffuzz_driver_runs--;
  __lsan_enable();
  if (mallocs <= frees) return;
  searches++;
  if (!__lsan_do_recoverable_leak_check()) return;
  ffuzz_driver_print("\nINFO: a leak has been found in the initial corpus.\n\n"
                     "INFO: to ignore leaks on libFuzzer side use -detect_leaks=0.\n\n");
  ffuzz_driver_save_last("leak", data, size);
  ffuzz_driver_statistics();
  _exit((int)ffuzz_driver.error_exitcode);
}
