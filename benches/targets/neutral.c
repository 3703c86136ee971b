/* Counts the edges that a set of inputs reaches, for any fuzzer alike: linked to a harness that
 * clang built with -fsanitize-coverage=trace-pc-guard, and itself built without.
 *
 *   neutral FOLDER …      prints edges reached and edges in all
 *   neutral -s FOLDER …   prints the edges reached after each folder, then edges in all, then the
 *                         reached ones as bits, four to a hexadecimal digit
 *   neutral -a            prints the address of each edge, if it is built with pc-table
 *
 * The inputs are run in a child process; one that crashes or takes longer than 5 s counts with what
 * it reached, and the next one is run in a new child. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_EDGES (1u << 20)
#define MOST_INPUTS (1u << 20)
#define MOST_BYTES (1u << 20)
#define LONGEST 5

/* Shared with the children. */
static struct {
  uint32_t next;
  uint8_t reached[MOST_EDGES];
} *shared;

static uint32_t edges;
static char *inputs[MOST_INPUTS];
static uint32_t count;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

void __sanitizer_cov_trace_pc_guard_init(uint32_t *start, uint32_t *stop) {
  if (start == stop || *start) return;
  while (start < stop && edges < MOST_EDGES - 1) *start++ = ++edges;
}

void __sanitizer_cov_trace_pc_guard(uint32_t *guard) {
  if (shared) shared->reached[*guard] = 1;
}

/* Of each edge an address and flags. */
static const uintptr_t *addresses, *addresses_end;

void __sanitizer_cov_pcs_init(const uintptr_t *start, const uintptr_t *stop) {
  addresses = start;
  addresses_end = stop;
}

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static void list(const char *folder) {
  DIR *dir = opendir(folder);
  if (!dir) fail(folder);
  for (struct dirent *entry; (entry = readdir(dir));) {
    struct stat status;
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    /* AFL leaves a text for the reader among the crashes. */
    if (!strcmp(entry->d_name, "README.txt") || stat(path, &status) || !S_ISREG(status.st_mode)) continue;
    if (count == MOST_INPUTS || !(inputs[count++] = strdup(path))) fail("too many inputs");
  }
  closedir(dir);
}

static void run_rest(void) {
  static uint8_t data[MOST_BYTES];
  while (shared->next < count) {
    FILE *file = fopen(inputs[shared->next++], "rb");
    if (!file) fail("input");
    size_t size = fread(data, 1, sizeof data, file);
    fclose(file);
    alarm(LONGEST);
    LLVMFuzzerTestOneInput(data, size);
  }
}

static void run(void) {
  while (shared->next < count) {
    pid_t child = fork();
    if (child < 0) fail("fork");
    if (child == 0) {
      run_rest();
      _exit(0);
    }
    waitpid(child, NULL, 0);
  }
}

static uint32_t reached(void) {
  uint32_t number = 0;
  for (uint32_t edge = 1; edge <= edges; edge++) number += shared->reached[edge];
  return number;
}

static void print_bits(void) {
  for (uint32_t first = 1; first <= edges; first += 4) {
    const uint8_t *four = shared->reached + first;
    printf("%x", four[0] | four[1] << 1 | four[2] << 2 | four[3] << 3);
  }
  puts("");
}

int main(int argc, char **argv) {
  int steps = argc > 1 && !strcmp(argv[1], "-s");
  if (argc == 2 && !strcmp(argv[1], "-a")) {
    for (const uintptr_t *at = addresses; at < addresses_end; at += 2) printf("0x%lx\n", (long)at[0]);
    return 0;
  }
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) fail("memory for the edges");
  for (int i = 1 + steps; i < argc; i++) {
    list(argv[i]);
    if (!steps) continue;
    run();
    printf("%u\n", reached());
    /* A child that crashes must not leave it to the next one. */
    fflush(stdout);
  }
  run();
  if (!steps) printf("%u ", reached());
  printf("%u\n", edges);
  if (steps) print_bits();
  return 0;
}
