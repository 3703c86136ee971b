/* See calls.h. */
#define _GNU_SOURCE
#include "qemu/calls.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define MOST 9
#define LONGEST 4096 /* of a path, and a page */

/* Numbers of Linux's system calls; 0 ends a list, so one that has the number 0 comes first. */
struct calls {
  const char *targets;
  int descriptor[MOST]; /* read, pread, readv, preadv, fstat, lseek: the file is the first argument */
  int path[MOST];       /* open, stat, lstat, access */
  int at[MOST];         /* openat, openat2, fstatat, statx, faccessat, faccessat2: the path is the second argument */
  int map;              /* mmap: the file is the fifth argument */
};

static const struct calls known[] = {
    {"x86_64", {0, 17, 19, 295, 5, 8}, {2, 4, 6, 21}, {257, 437, 262, 332, 269, 439}, 9},
    {"i386", {3, 180, 145, 333, 197, 108, 19, 140}, {5, 195, 196, 106, 107, 33}, {295, 437, 300, 383, 307, 439}, 192},
    {"arm armeb", {3, 180, 145, 361, 197, 108, 19, 140}, {5, 195, 196, 106, 107, 33}, {322, 437, 327, 397, 334, 439}, 192},
    {"aarch64 aarch64_be riscv64 riscv32 loongarch64", {63, 67, 65, 69, 80, 62}, {0}, {56, 437, 79, 291, 48, 439}, 222},
    {"mips mipsel", {4003, 4200, 4145, 4330, 4215, 4108, 4019, 4140}, {4005, 4213, 4214, 4106, 4107, 4033},
     {4288, 4437, 4293, 4366, 4300, 4439}, 4210},
    {"mips64 mips64el", {5000, 5016, 5018, 5289, 5005, 5008}, {5002, 5004, 5006, 5020}, {5247, 5437, 5252, 5326, 5259, 5439}, 5009},
    {"ppc ppc64 ppc64le", {3, 179, 145, 320, 197, 108, 19, 140}, {5, 195, 196, 106, 107, 33}, {286, 437, 291, 383, 298, 439}, 90},
    {"s390x", {3, 180, 145, 328, 108, 19}, {5, 106, 107, 33}, {288, 437, 293, 379, 300, 439}, 0},
};

static const struct calls *ours;

int ffuzz_qemu_knows_calls(const char *target) {
  size_t length = strlen(target);
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    for (const char *name = known[i].targets; *name; name += strcspn(name, " "), name += *name != 0)
      if (strcspn(name, " ") == length && !strncmp(name, target, length)) ours = &known[i];
  return ours != NULL;
}

static int has(const int *list, int64_t number) {
  for (int i = 0; i < MOST && (!i || list[i]); i++)
    if (list[i] == number) return 1;
  return 0;
}

/* Without a name from ffuzz it is afl-fuzz's file, which need not be there yet. */
static int is_input(const char *path) {
  struct stat file, other;
  const char *input = getenv("FFUZZ_QEMU_INPUT"), *name = strrchr(path, '/');
  if (!strcmp(path, "/dev/stdin")) return 1;
  if (!input) return !strncmp(name ? name + 1 : path, ".cur_input", 10);
  return !stat(path, &file) && !stat(input, &other) && file.st_dev == other.st_dev && file.st_ino == other.st_ino;
}

/* The guest may pass any address: the kernel reads what is there. */
static int names_input(uintptr_t address) {
  char path[LONGEST + 1];
  size_t first = LONGEST - address % LONGEST;
  struct iovec to = {path, LONGEST};
  struct iovec from[] = {{(void *)address, first}, {(void *)(address + first), LONGEST - first}};
  ssize_t length = process_vm_readv(getpid(), &to, 1, from, 2, 0);
  if (length <= 0) return 0;
  path[length] = 0;
  return is_input(path);
}

int ffuzz_qemu_reaches_input(int64_t number, const uint64_t arguments[5], uintptr_t base) {
  if (has(ours->descriptor, number)) return (uint32_t)arguments[0] == STDIN_FILENO;
  if (number && number == ours->map) return (uint32_t)arguments[4] == STDIN_FILENO;
  if (ours->path[0] && has(ours->path, number)) return names_input(base + arguments[0]);
  if (!has(ours->at, number)) return 0;
  return (uint32_t)arguments[0] == STDIN_FILENO || names_input(base + arguments[1]);
}
