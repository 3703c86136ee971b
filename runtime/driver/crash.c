/* The end of a harness that was started by hand and crashes: first the name of the input, then what
 * libFuzzer's users expect, exit code 77, or for a single file the crash's own signal, which debuggers
 * and other tools look for. Sanitizers tell us by their callback, all else is signals. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "driver/crash.h"
#include "driver/options.h"
#include "memory.h"
#include "process.h"

#define CRASH_CODE 77 /* libFuzzer's */
#define STACK_BYTES 65536
/* A limit of time or memory is looked at so often. */
#define TICK_USEC 250000

__attribute__((weak)) void __sanitizer_set_death_callback(void (*)(void));

static const struct {
  int number;
  const char *name;
} fatal[] = {{SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"},   {SIGABRT, "SIGABRT"}, {SIGILL, "SIGILL"},
             {SIGFPE, "SIGFPE"},   {SIGTRAP, "SIGTRAP"}, {SIGSYS, "SIGSYS"}};
#define FATAL (sizeof fatal / sizeof *fatal)

static const char *volatile path;
static const uint8_t *volatile data;
static volatile size_t size;
static volatile int in_folder;
static volatile time_t begun;

static time_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec;
}

HIDDEN void ffuzz_driver_input(const char *new_path, const uint8_t *new_data, size_t new_size, int folder) {
  data = new_data;
  size = new_size;
  in_folder = folder;
  begun = now();
  path = new_path;
}

static uint32_t rotate(uint32_t x, int n) { return x << n | x >> (32 - n); }

static void sha1_block(uint32_t h[5], const uint8_t *bytes) {
  uint32_t w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];
  for (int i = 0; i < 16; i++)
    w[i] = (uint32_t)bytes[4 * i] << 24 | (uint32_t)bytes[4 * i + 1] << 16 | (uint32_t)bytes[4 * i + 2] << 8 |
           bytes[4 * i + 3];
  for (int i = 16; i < 80; i++) w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
  for (int i = 0; i < 80; i++) {
    uint32_t f = i < 20 ? (b & c) | (~b & d) : i >= 40 && i < 60 ? (b & c) | (b & d) | (c & d) : b ^ c ^ d;
    uint32_t k = i < 20 ? 0x5a827999 : i < 40 ? 0x6ed9eba1 : i < 60 ? 0x8f1bbcdc : 0xca62c1d6;
    uint32_t next = rotate(a, 5) + f + e + k + w[i];
    e = d, d = c, c = rotate(b, 30), b = a, a = next;
  }
  h[0] += a, h[1] += b, h[2] += c, h[3] += d, h[4] += e;
}

/* In hexadecimal digits. No library: this runs in a handler of signals. */
static void sha1(const uint8_t *bytes, size_t length, char text[41]) {
  uint32_t h[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
  uint8_t last[128] = {0};
  size_t whole = length / 64 * 64, rest = length - whole, padded = rest < 56 ? 64 : 128;
  for (size_t at = 0; at < whole; at += 64) sha1_block(h, bytes + at);
  memcpy(last, bytes + whole, rest);
  last[rest] = 0x80;
  for (int i = 0; i < 8; i++) last[padded - 1 - (size_t)i] = (uint8_t)((uint64_t)length * 8 >> 8 * i);
  for (size_t at = 0; at < padded; at += 64) sha1_block(h, last + at);
  for (int i = 0; i < 40; i++) text[i] = "0123456789abcdef"[h[i / 8] >> (28 - 4 * (i % 8)) & 15];
  text[40] = 0;
}

/* Only with -artifact_prefix, and only for inputs of folders: a single file is known to who named it. */
static void save_copy(const char *kind) {
  char name[4096] = "", digest[41];
  const char *prefix = ffuzz_driver.artifact_prefix;
  if (!prefix || !in_folder || strlen(prefix) + 64 > sizeof name) return;
  sha1(data, size, digest);
  strcat(strcat(strcat(strcat(name, prefix), kind), "-"), digest);
  int file = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  int good = file >= 0 && write(file, data, size) == (ssize_t)size;
  ffuzz_say(good ? "[*] A copy is " : "[-] ERROR: There can be no copy as ");
  ffuzz_say(name);
  ffuzz_say("\n");
}

/* Said once: a sanitizer that has told us may end by a signal. */
static void tell(const char *kind, const char *what, const char *more) {
  static int told;
  if (told++) return;
  ffuzz_say("[-] ERROR: The input ");
  ffuzz_say(path);
  ffuzz_say(what);
  ffuzz_say(more);
  ffuzz_say(".\n");
  save_copy(kind);
}

/* Inputs of a folder end as in libFuzzer, unless the user has chosen another code for all. */
static void leave_by_code(void) {
  if (ffuzz_driver.error_exitcode >= 0) _exit((int)ffuzz_driver.error_exitcode);
  if (in_folder) _exit(CRASH_CODE);
}

static void on_fatal_signal(int number) {
  if (path) {
    size_t i = 0;
    while (i + 1 < FATAL && fatal[i].number != number) i++;
    tell("crash", " ends the harness by ", fatal[i].name);
    leave_by_code();
  }
  signal(number, SIG_DFL);
  sigset_t just_this;
  sigemptyset(&just_this);
  sigaddset(&just_this, number);
  sigprocmask(SIG_UNBLOCK, &just_this, NULL);
  syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), number);
}

/* Under a fuzzer a signal: an exit code is no crash there. */
HIDDEN void ffuzz_driver_overwritten(void) {
  fprintf(stderr, "==%ld== ERROR: libFuzzer: fuzz target overwrites its const input\n", (long)getpid());
  fputs("SUMMARY: libFuzzer: overwrites-const-input\n", stderr);
  if (ffuzz_under_fuzzer) abort();
  if (path) tell("crash", " is overwritten by the harness", "");
  leave_by_code();
  _exit(CRASH_CODE);
}

static void on_sanitizer_death(void) {
  if (!path) return;
  tell("crash", " makes a sanitizer end the harness", "");
  leave_by_code();
}

static void on_exit_of_program(void) {
  if (!path) return;
  tell("crash", " makes the harness call exit()", "");
  leave_by_code();
}

HIDDEN void ffuzz_driver_check_limits(void) {
  struct rusage usage;
  if (!path) return;
  if (ffuzz_driver.timeout > 0 && now() - begun > ffuzz_driver.timeout) {
    tell("timeout", " takes longer than -timeout", "");
    _exit((int)ffuzz_driver.timeout_exitcode);
  }
  if (ffuzz_driver.rss_limit_mb > 0 && getrusage(RUSAGE_SELF, &usage) == 0 &&
      usage.ru_maxrss >> 10 > ffuzz_driver.rss_limit_mb) {
    tell("oom", " takes more memory than -rss_limit_mb", "");
    _exit((int)ffuzz_driver.oom_exitcode);
  }
}

static void on_tick(int number) {
  (void)number;
  ffuzz_driver_check_limits();
}

static void start_ticks(void) {
  struct sigaction tick = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
  struct itimerval often = {{0, TICK_USEC}, {0, TICK_USEC}};
  sigemptyset(&tick.sa_mask);
  sigaction(SIGALRM, &tick, NULL);
  setitimer(ITIMER_REAL, &often, NULL);
}

/* On a stack of its own, so that a stack overflow is seen too. A handler that is already there
 * (a sanitizer's) stays. */
HIDDEN void ffuzz_driver_watch(void) {
  stack_t stack = {.ss_sp = ffuzz_pages(STACK_BYTES), .ss_size = STACK_BYTES}, old_stack;
  if (sigaltstack(NULL, &old_stack) == 0 && (old_stack.ss_flags & SS_DISABLE)) sigaltstack(&stack, NULL);
  for (size_t i = 0; i < FATAL; i++) {
    struct sigaction ours = {.sa_handler = on_fatal_signal, .sa_flags = SA_ONSTACK}, theirs;
    sigemptyset(&ours.sa_mask);
    if (sigaction(fatal[i].number, NULL, &theirs) || theirs.sa_handler != SIG_DFL) continue;
    sigaction(fatal[i].number, &ours, NULL);
  }
  if (__sanitizer_set_death_callback) __sanitizer_set_death_callback(on_sanitizer_death);
  atexit(on_exit_of_program);
  if (ffuzz_driver.timeout > 0 || ffuzz_driver.rss_limit_mb > 0) start_ticks();
}
