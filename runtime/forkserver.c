/* The AFL fork server: hello, run loop, children.
 *
 * Descriptors 198 (commands) and 199 (answers) are all there is; a program is under a fuzzer if
 * the hello can be written. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "forkserver.h"
#include "breakpoints.h"
#include "machine.h"
#include "connect.h"
#include "counters.h"
#include "domains.h"
#include "edge-map.h"
#include "log.h"
#include "memory.h"
#include "modules.h"
#include "novelty.h"
#include "pipes.h"
#include "process.h"
#include "registration.h"
#include "runs.h"

#define OLD_OPTIONS 0x80000001u
#define OLD_MAP_SIZE 0x40000000u
#define OLD_SHMEM 0x01000000u
#define V1_HELLO 0x41464c01u
#define V1_MAP_SIZE 1u
#define V1_SHMEM 2u
#define ERROR_SHM_OPEN 4

/* Defined by __AFL_FUZZ_INIT() in the program, or by the driver. */
extern int __afl_sharedmem_fuzzing __attribute__((weak));

static volatile pid_t child;
static volatile int child_is_stopped;
/* A child that is put back after each run, and its number. */
static volatile pid_t lasting_child;
static volatile uint32_t lasting_number;

static int offers_shared_input(void) {
  return &__afl_sharedmem_fuzzing && __afl_sharedmem_fuzzing && getenv("__AFL_SHM_FUZZ_ID");
}

static void map_shared_input(void) {
  unsigned char *at = shmat(atoi(getenv("__AFL_SHM_FUZZ_ID")), NULL, 0);
  if (at == (void *)-1) {
    ffuzz_die_with_code(ERROR_SHM_OPEN);
    return;
  }
  __afl_fuzz_len = (unsigned int *)at;
  __afl_fuzz_ptr = at + sizeof(unsigned int);
}

static int hello_v1(uint32_t size, int shared_input) {
  uint32_t reply;
  if (!ffuzz_answer(V1_HELLO)) return 0;
  if (!ffuzz_receive(&reply) || reply != ~V1_HELLO) {
    ffuzz_say("[-] ERROR: The fuzzer does not speak version 1 of the fork server protocol.\n");
    _exit(1);
  }
  ffuzz_answer(V1_MAP_SIZE | (shared_input ? V1_SHMEM : 0));
  ffuzz_answer(size);
  if (shared_input) map_shared_input();
  return ffuzz_answer(V1_HELLO);
}

/* Without shared-memory test cases there is no reply to this hello: reading one would swallow the
 * first run command. */
static int hello_old(uint32_t size, int shared_input) {
  uint32_t reply;
  uint32_t hello = OLD_OPTIONS | OLD_MAP_SIZE | (size - 1) << 1;
  if (!ffuzz_answer(hello | (shared_input ? OLD_SHMEM : 0))) return 0;
  if (!shared_input) return 1;
  if (!ffuzz_receive(&reply)) _exit(1);
  if ((reply & (OLD_OPTIONS | OLD_SHMEM)) == (OLD_OPTIONS | OLD_SHMEM)) map_shared_input();
  return 1;
}

/* FuzzFactory's: the number of domains, then their records; no reply. One write, because its fuzzer takes
 * all records by one read, and ends if some are missing. */
static int hello_legacy(void) {
  uint32_t words[1 + 4 * FFUZZ_LEGACY_DOMAINS], count = 0, domains = ffuzz_legacy_domains();
  words[count++] = domains;
  for (uint32_t i = 0; i < domains; i++) {
    const struct domain *d = &ffuzz_domains[i];
    words[count++] = d->start;
    words[count++] = d->start + d->size;
    words[count++] = d->reducer;
    words[count++] = d->initial;
  }
  ssize_t n, bytes = count * (ssize_t)sizeof *words;
  do n = write(STATUS_FD, words, (size_t)bytes);
  while (n < 0 && errno == EINTR);
  return n == bytes;
}

/* Reaped too: where no init process does that, it would stay behind as a zombie. */
static void end_child(pid_t pid) {
  int status;
  if (pid <= 0) return;
  kill(pid, SIGKILL);
  waitpid(pid, &status, 0);
}

static void end_children(void) {
  pid_t lasting = lasting_child;
  lasting_child = 0;
  end_child(child);
  end_child(lasting);
}

static void on_terminate(int signal_number) {
  (void)signal_number;
  end_children();
  _exit(0);
}

/* What the parent changed for itself and the program must find as it was. */
struct signals {
  struct sigaction terminate, child_ended;
};

static void take_signals(struct signals *old) {
  struct sigaction terminate = {.sa_handler = on_terminate}, ended = {.sa_handler = SIG_DFL};
  sigaction(SIGTERM, &terminate, &old->terminate);
  sigaction(SIGCHLD, &ended, &old->child_ended);
}

static void become_child(const struct signals *old, pid_t server) {
  sigaction(SIGTERM, &old->terminate, NULL);
  sigaction(SIGCHLD, &old->child_ended, NULL);
  /* A stopped child would otherwise survive a killed fork server for ever. */
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != server) _exit(1);
  close(CONTROL_FD);
  close(STATUS_FD);
}

static int wait_for(pid_t pid, int options, int *status) {
  pid_t ended;
  do ended = waitpid(pid, status, options);
  while (ended < 0 && errno == EINTR);
  return ended == pid;
}

static void leave(void) {
  end_children();
  _exit(1);
}

/* A run without breakpoints repeats one that has printed the same. */
static void be_silent(void) {
  int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
  for (int fd = 1; fd <= 2; fd++)
    if (null > 2 && fcntl(fd, F_GETFD) >= 0) dup2(null, fd);
  if (null > 2) close(null);
}

/* 0 in the child. */
static pid_t start_child(const struct signals *old, pid_t server) {
  if (ffuzz_breakpoints) ffuzz_breakpoints->run_begins();
  pid_t pid = fork();
  if (pid < 0) leave();
  if (pid) {
    child = pid;
    /* Here, not in the child, where the clock costs page faults in every run. */
    if (ffuzz_runs) ffuzz_note_start();
    return pid;
  }
  become_child(old, server);
  if (ffuzz_runs) {
    /* Here, not in the parent, which may be later than the end of the first run. Asked of the kernel: a stand-in for
     * the network has other numbers. */
    *(ffuzz_runs->lasting ? &ffuzz_runs->lasting_child : &ffuzz_runs->child) = (uint32_t)ffuzz_kernel(SYS_getpid, 0, 0, 0, 0, 0, 0);
    if (ffuzz_runs->log && ffuzz_runs->breakpoints == FFUZZ_BREAKPOINTS_ALL) ffuzz_log_start();
    if (!ffuzz_runs->lasting && ffuzz_runs->breakpoints == FFUZZ_BREAKPOINTS_NONE) be_silent();
  }
  return 0;
}

/* Returns in each child; the server itself never comes back. */
static void serve(void) {
  struct signals old;
  pid_t server = getpid();
  take_signals(&old);
  for (;;) {
    uint32_t was_killed;
    int status;
    if (!ffuzz_receive(&was_killed)) leave();
    if (child_is_stopped && was_killed) {
      child_is_stopped = 0;
      waitpid(child, &status, 0);
    }
    if (child_is_stopped) {
      child_is_stopped = 0;
      kill(child, SIGCONT);
    } else {
      child = 0;
      if (!start_child(&old, server)) return;
    }
    if (!ffuzz_answer((uint32_t)child) || !wait_for(child, ffuzz_persistent ? WUNTRACED : 0, &status)) leave();
    child_is_stopped = WIFSTOPPED(status);
    if (!child_is_stopped) child = 0;
    if (ffuzz_breakpoints) ffuzz_breakpoints->run_ends();
    if (!ffuzz_answer((uint32_t)status)) leave();
  }
}

static void on_child_ended(int signal_number) {
  (void)signal_number;
  int status, error = errno;
  if (lasting_child > 0 && waitpid(lasting_child, &status, WNOHANG) == lasting_child) {
    lasting_child = 0;
    ffuzz_report_lasting_end(lasting_number, status, child > 0);
  }
  errno = error;
}

/* 0 in the child, which is put back after each run. The server goes on: a signal tells it of the end. */
static pid_t start_lasting(const struct signals *old, pid_t server, uint32_t number) {
  struct sigaction ended = {.sa_handler = on_child_ended};
  sigset_t one, before;
  sigemptyset(&one);
  sigaddset(&one, SIGCHLD);
  sigaction(SIGCHLD, &ended, NULL);
  sigprocmask(SIG_BLOCK, &one, &before);
  pid_t pid = start_child(old, server);
  if (pid) {
    child = 0;
    lasting_child = pid;
    lasting_number = number;
  }
  sigprocmask(SIG_SETMASK, &before, NULL);
  ffuzz_lasting = !pid;
  return pid;
}

/* Here, not in the child, which would copy each page of the code. */
static void set_breakpoints(void) {
  static uint32_t present = FFUZZ_BREAKPOINTS_ALL, known;
  uint32_t wanted = ffuzz_runs->lasting ? FFUZZ_BREAKPOINTS_ALL : ffuzz_runs->breakpoints, learned = ffuzz_runs->learned;
  static uint32_t no_detours;
  if (ffuzz_breakpoints && ffuzz_runs->no_detours && !no_detours) {
    no_detours = 1;
    ffuzz_breakpoints->leave_detours();
    present = FFUZZ_BREAKPOINTS_ALL;
  }
  if (!ffuzz_breakpoints || (wanted == present && (wanted != FFUZZ_BREAKPOINTS_UNSEEN || known == learned))) return;
  if (wanted == FFUZZ_BREAKPOINTS_NONE)
    ffuzz_breakpoints->remove_all();
  else
    ffuzz_breakpoints->prepare(NULL);
  if (wanted == FFUZZ_BREAKPOINTS_UNSEEN) ffuzz_breakpoints->prepare(ffuzz_edges_unseen());
  present = wanted;
  known = learned;
}

/* The same through the channel: no word goes through a pipe. A child in the persistent loop deals with
 * the fuzzer by itself until it ends. */
static void serve_channel(void) {
  struct signals old;
  pid_t server = getpid();
  take_signals(&old);
  for (int i = 0; i < 64; i++)
    if (fcntl(i, F_GETFD) >= 0) ffuzz_inherited |= (uint64_t)1 << i;
  for (uint32_t number = 0;;) {
    int status;
    ffuzz_await_word(&ffuzz_runs->want, ++number);
    set_breakpoints();
    if (ffuzz_runs->lasting) {
      if (!start_lasting(&old, server, number)) return;
      continue;
    }
    if (!start_child(&old, server)) return;
    if (!wait_for(child, 0, &status)) leave();
    child = 0;
    if (ffuzz_breakpoints) ffuzz_breakpoints->run_ends();
    ffuzz_report_end(number, status);
  }
}

static void print_map_size_and_leave(uint64_t size) {
  char line[24];
  int n = snprintf(line, sizeof line, "%llu\n", (unsigned long long)size);
  if (write(1, line, (size_t)n) < 0) _exit(1);
  _exit(255);
}

static int say_hello(uint32_t size) {
  if (ffuzz_speaks_legacy()) return hello_legacy();
  int shared_input = offers_shared_input();
  return ffuzz_speaks_v1() ? hello_v1(size, shared_input) : hello_old(size, shared_input);
}

HIDDEN void ffuzz_start_server(void) {
  static int started;
  if (started || getenv("AFL_DISABLE_LLVM_INSTRUMENTATION")) return;
  started = 1;
  int error = errno; /* which a program may show, before anything has failed */
  uint64_t size = ffuzz_map_size();
  if (getenv("AFL_DUMP_MAP_SIZE")) print_map_size_and_leave(size);
  ffuzz_connect();
  if (size < 2) size = 2; /* the smallest that the hello can say */
  if (!say_hello((uint32_t)size)) return;
  ffuzz_under_fuzzer = 1;
  ffuzz_persistent = getenv("__AFL_PERSISTENT") != NULL;
  if (ffuzz_runs)
    serve_channel();
  else
    serve();
  ffuzz_show_life();
  errno = error;
}

/* The program starts the fork server itself (__AFL_INIT()), unless the user wants it early. */
static int is_deferred(void) {
  return getenv("__AFL_DEFER_FORKSRV") && !getenv("AFL_EARLY_FORKSERVER") && !getenv(FFUZZ_NOT_DEFERRED_ENV);
}

/* After the constructors of clang's coverage (priority 2), before those of the program. */
__attribute__((constructor(5))) static void start_early(void) {
  if (!ffuzz_preloaded && !is_deferred()) ffuzz_start_server();
}

/* A shared library needs them of a program that has neither counters nor domains itself. Not asked for by names that
 * the library has too: the linker would be content with those. */
__attribute__((used)) static void (*const linked_with_us[])(void) = {ffuzz_counters, ffuzz_registration};

void __ffuzz_runtime(void) {} /* the name by which the linker is asked for the runtime */
