/* Does this and that before it looks at its input, as its first argument says. The second one, if there is one,
 * names the input, as it is or by a link. What stands in the input, and whether all is as it was, shows in the edges. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <locale.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static char text[64];
static volatile int complaints, counted;
static const char *own_file, *input;
static FILE *of_constructor;
static char *large;

__attribute__((constructor)) static void open_early(int argc, char **argv) {
  (void)argc;
  of_constructor = fopen(argv[0], "r");
  if (of_constructor) setvbuf(of_constructor, NULL, _IONBF, 0);
}

#define MUST_BE(WHAT)          \
  do {                         \
    if (!(WHAT)) complaints++; \
  } while (0)

/* The input by its name, or by another one. */
static int open_input(const char *how) {
  char other[4096];
  if (!input) return 0;
  if (!strcmp(how, "relative")) {
    const char *name = strrchr(input, '/') + 1;
    snprintf(other, sizeof other, "%.*s", (int)(name - input), input);
    MUST_BE(!chdir(other));
    return open(name, O_RDONLY);
  }
  if (!strcmp(how, "size")) {
    struct stat file;
    MUST_BE(!stat(input, &file));
    if (file.st_size > 20) counted++;
  }
  return open(input, O_RDONLY);
}

static int input_as(const char *how) {
  if (!strcmp(how, "stdin")) return open("/dev/stdin", O_RDONLY);
  if (!strcmp(how, "proc")) return open("/proc/self/fd/0", O_RDONLY);
  if (!strcmp(how, "dup")) return dup(0);
  if (!strcmp(how, "map")) {
    struct stat file;
    fstat(0, &file);
    char *at = mmap(NULL, sizeof text, PROT_READ, MAP_PRIVATE, 0, 0);
    if (at != MAP_FAILED && file.st_size) memcpy(text, at, (size_t)file.st_size < sizeof text ? (size_t)file.st_size : sizeof text - 1);
    return -1;
  }
  return open_input(how);
}

/* The same in each run. */
static int look_around(void) {
  char line[256], first[16];
  FILE *file = fopen(own_file, "r");
  MUST_BE(file && fread(line, 1, sizeof line, file) == sizeof line && !fclose(file));
  setlocale(LC_ALL, "C.UTF-8");
  MUST_BE(!isatty(0) && !isatty(1));
  MUST_BE(!access("/", R_OK) && access("/not/there", R_OK));
  MUST_BE(getpwuid(getuid()));
  signal(SIGUSR1, SIG_IGN);
  umask(027);
  for (int i = 0; i < 5; i++) counted++;
  char *block = malloc(200000);
  memset(block, 1, 200000);
  free(block);
  int kept = open(own_file, O_RDONLY | O_CLOEXEC);
  MUST_BE(read(kept, first, sizeof first) == sizeof first && !memcmp(first, line, sizeof first));
  return kept;
}

static void on_signal(int signal_number) {
  (void)signal_number;
  counted++;
}

static void before(const char *how) {
  if (!strcmp(how, "random")) {
    MUST_BE(getrandom(text, 1, 0) == 1);
    if (text[0] & 1) counted++; /* fork does not agree with itself: not in the tests that compare */
  }
  if (!strcmp(how, "device")) {
    int device = open("/dev/urandom", O_RDONLY);
    MUST_BE(device > 2 && read(device, text, 1) == 1 && !close(device));
  }
  if (!strcmp(how, "unread")) exit(7);
  if (!strcmp(how, "large")) large = malloc(1 << 20);
  if (!strcmp(how, "grown")) large = realloc(malloc(1 << 20), 3 << 20);
  if (!strcmp(how, "null")) MUST_BE(open(NULL, O_RDONLY) < 0 && access(NULL, F_OK) < 0 && chdir(NULL) < 0);
  if (!strcmp(how, "once")) __sysv_signal(SIGUSR2, on_signal);
  if (!strcmp(how, "crash")) raise(SIGSEGV);
  if (!strcmp(how, "fault")) *(volatile char *)NULL = 1;
  if (!strcmp(how, "long")) {
    int file = open(own_file, O_RDONLY);
    for (int i = 0; i < 60000; i++) MUST_BE(lseek(file, i, SEEK_SET) == i);
    close(file);
  }
  text[0] = 0;
}

/* With what was made before. */
static void behind(const char *how, int kept) {
  char byte;
  MUST_BE(ftell(of_constructor) == 0 && fread(&byte, 1, 1, of_constructor) == 1);
  if (large) memset(large, 1, 1 << 20), free(large);
  if (!strcmp(how, "once")) {
    raise(SIGUSR2);
    MUST_BE(counted == 6);
    counted--;
  }
  if (!strcmp(how, "lock")) MUST_BE(!flock(kept, LOCK_EX | LOCK_NB));
  if (!strcmp(how, "flags")) {
    MUST_BE(fcntl(kept, F_GETFD) == FD_CLOEXEC && !(fcntl(kept, F_GETFL) & O_NONBLOCK));
    if (text[0] == 'n') fcntl(kept, F_SETFL, O_NONBLOCK);
    if (text[0] == '{') close(kept);
  }
}

int main(int argc, char **argv) {
  const char *how = argc > 1 ? argv[1] : "";
  struct stat file;
  int peer = -1;
  own_file = argv[0], input = argc > 2 ? argv[2] : NULL;
  if (!strcmp(how, "first")) MUST_BE(read(0, text, sizeof text - 1) >= 0);
  int kept = look_around();
  if (!strcmp(how, "socket")) peer = socket(AF_UNIX, SOCK_STREAM, 0);
  before(how);
  int from = strcmp(how, "first") ? input_as(how) : -1;
  if (from >= 0) MUST_BE(read(from, text, sizeof text - 1) >= 0);

  MUST_BE(counted == 5);
  MUST_BE(lseek(kept, 0, SEEK_CUR) == 16);
  behind(how, kept);
  MUST_BE(umask(0) == 027);
  MUST_BE(signal(SIGUSR1, SIG_DFL) == SIG_IGN);
  MUST_BE(!strcmp(setlocale(LC_ALL, NULL), "C.UTF-8"));
  if (peer >= 0) MUST_BE(!fstat(peer, &file) && S_ISSOCK(file.st_mode));
  switch (text[0]) {
    case '[': lseek(kept, 100, SEEK_SET); break;
    case '{': close(kept); break;
    case 'n': dup2(2, kept); break;
    case 't': MUST_BE(read(kept, text, 32) == 32); break;
    case '"': MUST_BE(!chdir("/")); break;
  }
  for (const char *at = text; *at; at++)
    if (*at == '[' || *at == '{') counted++;
  return counted > 7 ? 2 : 3;
}
