/* Does to its process what the first byte of the input says, after it has looked whether everything is as
 * it was when it was started. What it finds changed shows in the edges, by a line of its own. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096
#define PAGES 16

static char data[64 * PAGE] = {1};
static char zeroes[8 * PAGE];
static int number = 5;
static __thread int of_thread = 9;
static char *block;
static char *mapped;
static char *reserved;
static int fed, left;
static ssize_t length; /* of what was read before anything else was done */
static mode_t first_mask;
static volatile int complaints;

#define MUST_BE(WHAT)          \
  do {                         \
    if (!(WHAT)) complaints++; \
  } while (0)

__attribute__((constructor)) static void prepare(void) {
  first_mask = umask(022);
  umask(first_mask);
  block = malloc(100000);
  memset(block, 0x5a, 100000);
  mapped = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(mapped, 7, PAGES * PAGE);
  reserved = mmap(NULL, PAGES * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  memset(data + PAGE, 3, sizeof data - PAGE);
}

__attribute__((destructor)) static void leave(void) { left++; }

static void at_exit(void) { number = 77; }

static void on_signal(int signal_number) { exit(signal_number); }

static void look_at_memory(void) {
  MUST_BE(number == 5);
  MUST_BE(of_thread == 9);
  MUST_BE(left == 0 && fed == 0);
  for (int i = 0; i < 100000; i += 997) MUST_BE(block[i] == 0x5a);
  for (int i = 0; i < PAGES * PAGE; i += 512) MUST_BE(mapped[i] == 7);
  for (size_t i = PAGE; i < sizeof data; i += 512) MUST_BE(data[i] == 3);
  for (size_t i = 0; i < sizeof zeroes; i += 512) MUST_BE(zeroes[i] == 0);
  MUST_BE(!getenv("LEFT_OVER"));
  MUST_BE(!strcmp(setlocale(LC_ALL, NULL), "C"));
}

static void look_at_descriptors(void) {
  int lowest = dup(2);
  MUST_BE(lowest == 3);
  close(lowest);
  for (int i = 0; i < 3; i++) MUST_BE(fcntl(i, F_GETFD) == 0);
  MUST_BE(lseek(0, 0, SEEK_CUR) == length);
}

static void look_at_signals(void) {
  struct sigaction action;
  struct itimerval timer;
  sigset_t blocked, pending;
  stack_t stack;
  sigaction(SIGUSR1, NULL, &action);
  MUST_BE(action.sa_handler == SIG_DFL);
  sigprocmask(SIG_SETMASK, NULL, &blocked);
  MUST_BE(!sigismember(&blocked, SIGINT));
  sigpending(&pending);
  MUST_BE(!sigismember(&pending, SIGUSR2));
  MUST_BE(alarm(0) == 0);
  getitimer(ITIMER_PROF, &timer);
  MUST_BE(timer.it_value.tv_sec == 0);
  sigaltstack(NULL, &stack);
  MUST_BE(stack.ss_size != 3 * PAGE * PAGES);
}

static void look_at_the_rest(void) {
  char folder[4096];
  struct rlimit limit;
  mode_t mask = umask(022);
  umask(mask);
  MUST_BE(mask == first_mask);
  MUST_BE(getcwd(folder, sizeof folder) && strcmp(folder, "/"));
  getrlimit(RLIMIT_STACK, &limit);
  MUST_BE(limit.rlim_cur != 1 << 20);
  prctl(PR_GET_NAME, folder);
  MUST_BE(strcmp(folder, "changed"));
}

static void *end(void *unused) {
  of_thread = 4;
  return unused;
}

/* Whether it gets to its first line before the program ends is not for the edges to say. */
__attribute__((no_sanitize("coverage"))) static void *wait_for_ever(void *unused) {
  for (;;) pause();
  return unused;
}

static int deep(int n) {
  volatile char frame[PAGE];
  frame[0] = (char)n;
  return n ? deep(n - 1) + frame[0] : 0;
}

static void fill(char *at, size_t bytes) {
  for (size_t i = 0; at && i < bytes; i += PAGE) at[i] = 1;
}

static void *map(size_t bytes) { return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }

static void thread(void *(*function)(void *), int joined) {
  pthread_t id;
  if (!pthread_create(&id, NULL, function, NULL) && joined) pthread_join(id, NULL);
}

/* To all that is shared and not the channel: what stands there is not for the edges to say. `place`: the
 * word that is written over. */
__attribute__((noinline, no_sanitize("coverage"))) static void harm(char how, int place) {
  char line[512];
  FILE *maps = fopen("/proc/self/maps", "r");
  while (maps && fgets(line, sizeof line, maps)) {
    unsigned long start, end;
    char rights[5];
    if (sscanf(line, "%lx-%lx %4s", &start, &end, rights) != 3 || strcmp(rights, "rw-s")) continue;
    /* Not the gigabytes that a sanitizer's shadow has as its table. */
    if (end - start >= 64 << 20 || strstr(line, "ffuzz-channel")) continue;
    if (how == 'W') memset((void *)start, 0xff, end - start);
    if (how == 'J') memset((void *)(start + (unsigned long)place * 4 % (end - start)), 0xff, 4);
    if (how == 'O') mmap((void *)start, end - start, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (how == 'Y') munmap((void *)start, end - start);
    if (how == 'j') mprotect((void *)start, end - start, PROT_READ);
  }
}

static void memory(char how, int place) {
  switch (how) {
    case 'W':
    case 'O':
    case 'Y':
    case 'j':
    case 'J': harm(how, place); break;
    case 'm': fill(map(100 << 20), 100 << 20); break;
    case 'n': munmap(map(8 * PAGE), 3 * PAGE); break;
    case 'M': fill(malloc(100 << 20), 100 << 20); break;
    case 'N': {
      char *large = malloc(20 << 20);
      fill(large, 20 << 20);
      free(large);
      break;
    }
    case 'v': {
      char *moved = map(2 * PAGE);
      moved = mremap(moved, 2 * PAGE, 64 * PAGE, MREMAP_MAYMOVE);
      moved[63 * PAGE] = 1;
      break;
    }
    case 'l': memset(malloc(65536), 1, 65536); break;
    case 'g':
      number = 6, of_thread = 1, fed = 1;
      memset(block, 1, 100000);
      memset(mapped, 1, PAGES * PAGE);
      memset(data, 1, sizeof data);
      memset(zeroes, 1, sizeof zeroes);
      setenv("LEFT_OVER", "1", 1);
      break;
    case 'G': setlocale(LC_ALL, "C.UTF-8"); break;
    case 'p': mprotect(mapped, PAGE, PROT_READ); break;
    case 'u': munmap(mapped + PAGE, 2 * PAGE); break;
    case '!': /* is gone for this run */
      munmap(mapped + PAGE, 2 * PAGE);
      mapped[PAGE] = 1;
      break;
    case '3': mapped = mremap(mapped, PAGES * PAGE, PAGE, 0); break;
    case '5': {
      char *moved = mremap(mapped, PAGES * PAGE, 64 * PAGE, MREMAP_MAYMOVE);
      MUST_BE(moved[PAGES * PAGE - 1] == 7 && moved[PAGES * PAGE] == 0);
      moved[0] = moved[64 * PAGE - 1] = 1;
      break;
    }
    case '6': /* what an earlier run has written there is gone */
      mprotect(reserved + PAGE, 4 * PAGE, PROT_READ | PROT_WRITE);
      for (int i = 0; i < 4 * PAGE; i += 512) MUST_BE(!reserved[PAGE + i]);
      fill(reserved + PAGE, 4 * PAGE);
      munmap(reserved + 2 * PAGE, PAGE);
      break;
    case '7': MUST_BE(!mlock(mapped, PAGE)); break;
    case '8': /* both ways, as a compiler in memory does it, and gone in the end */
      for (int i = 0; i < 300; i++) mprotect(mapped, 4 * PAGE, i & 1 ? PROT_READ | PROT_WRITE : PROT_READ);
      fill(mapped, 4 * PAGE);
      munmap(mapped, PAGES * PAGE);
      munmap(mapped, PAGES * PAGE);
      break;
    case 'U':
      mmap(mapped + PAGE, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
      break;
    case 'z': madvise(mapped, 2 * PAGE, MADV_DONTNEED); break;
    case 'Z': madvise(mapped + PAGE, PAGE, MADV_FREE); break;
    case 'w': deep(1000); break;
    case 'b': memset(sbrk(1 << 20), 1, 1 << 20); break;
    case 'L': dlopen("libz.so.1", RTLD_NOW); break;
    case '2': {
      char *growing = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1, 0);
      growing[0] = 1;
      break;
    }
    case 'E': {
      char *shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
      shared[0] = 1;
      break;
    }
  }
}

static void descriptors(char how) {
  switch (how) {
    case 'f':
      for (int i = 0; i < 50; i++) open("/dev/null", O_RDONLY);
      break;
    case 'c':
      close(0), close(1);
      open("/dev/zero", O_RDONLY);
      break;
    case 'C':
      for (int i = 0; i < 1024; i++) close(i);
      break;
    case 'R': syscall(SYS_close_range, 0, ~0u, 0); break;
    case 'D': dup2(open("/dev/zero", O_RDONLY), 0); break;
    case 'F': fcntl(0, F_SETFD, FD_CLOEXEC); break;
    case 'd': fchdir(open("/", O_RDONLY)), umask(0111); break;
    case 'o': {
      char line[4];
      fgets(line, sizeof line, stdin);
      printf("not flushed");
      atexit(at_exit);
      break;
    }
  }
}

static void signals(char how) {
  struct itimerval later = {{0, 0}, {1000, 0}};
  sigset_t set;
  stack_t stack = {.ss_sp = data, .ss_size = 3 * PAGE * PAGES};
  sigemptyset(&set);
  switch (how) {
    case 's':
      signal(SIGUSR1, on_signal), signal(SIGHUP, SIG_IGN);
      alarm(1000), setitimer(ITIMER_PROF, &later, NULL);
      sigaddset(&set, SIGINT), sigprocmask(SIG_BLOCK, &set, NULL);
      sigaltstack(&stack, NULL);
      MUST_BE(!sigaltstack(NULL, &stack) && stack.ss_size == 3 * PAGE * PAGES);
      break;
    case 'B':
      sigaddset(&set, SIGUSR2), sigprocmask(SIG_BLOCK, &set, NULL);
      raise(SIGUSR2);
      break;
    case 'X': signal(SIGUSR1, on_signal), raise(SIGUSR1); break;
    case 'y': signal(SIGSYS, on_signal); break;
    case 'x': *(volatile int *)(uintptr_t)(number - 5) = 1; break;
    case 'h': ((volatile char *)malloc(16))[1 << 20] = 1; break; /* far behind the heap */
    case 'a': abort();
    case '4': kill(getppid(), 0); break; /* of many runs in one, and of none in particular */
    case 'V': raise(SIGSTOP); break;
    case 'H':
      for (;;) complaints = 0;
  }
}

static void processes(char how) {
  struct rlimit limit = {1 << 20, RLIM_INFINITY};
  switch (how) {
    case 't': thread(end, 1); break;
    case 'T': thread(wait_for_ever, 0); break;
    case 'k': {
      char *words[] = {"true", NULL};
      pid_t child;
      posix_spawn(&child, "/bin/true", NULL, NULL, words, NULL);
      break;
    }
    case 'K': {
      pid_t child = fork();
      if (!child) exit(3);
      waitpid(child, NULL, 0);
      break;
    }
    case 'S':
      if (system("true")) number = 5;
      break;
    case 'P': execl("/bin/true", "true", (char *)NULL); break;
    case 'r': setrlimit(RLIMIT_STACK, &limit); break;
    case 'A': prctl(PR_SET_NAME, "changed"); break;
    case 'i': syscall(425, 4, data); break; /* io_uring_setup */
    case 'I': syscall(SYS_userfaultfd, 1); break;
    case 'e': _exit(5);
    case 'q': quick_exit(6);
    case 'Q': syscall(SYS_exit_group, 7); break;
  }
}

int main(void) {
  char how[8] = {0};
#ifdef READ_FIRST /* the looks belong to each run, also if it begins with the first look at the input */
  length = read(0, how, 4);
#endif
  look_at_memory();
  look_at_descriptors();
  look_at_signals();
  look_at_the_rest();
  if ((length ? length : read(0, how, 4)) <= 0) return 1;
  memory(how[0], (unsigned char)how[1] << 8 | (unsigned char)how[2]);
  descriptors(how[0]);
  signals(how[0]);
  processes(how[0]);
  return 2;
}
