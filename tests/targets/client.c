/* A fuzzer in miniature for tests of the runtime: offers the channel, plays the fork server, runs
 * each file (shared-memory test cases too, with -s) and prints what it saw.
 *
 *   client [-p] [-s] [-n] TARGET FILE...     -p: __AFL_PERSISTENT, -n: no channel, SysV map */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#include "channel.h"

static int control[2], status[2], memory = -1, input, persistent, shared_input, no_channel;
static int map_id = -1, input_id = -1;
static uint8_t *segment, *test_case;

static void die(const char *what) {
  perror(what);
  exit(1);
}

static void set_number(const char *name, long n) {
  char text[24];
  snprintf(text, sizeof text, "%ld", n);
  setenv(name, text, 1);
}

static void offer_channel(void) {
  struct ffuzz_channel offer = {.magic = FFUZZ_CHANNEL_MAGIC, .version = FFUZZ_CHANNEL_VERSION};
  memory = memfd_create("channel", MFD_ALLOW_SEALING | MFD_CLOEXEC);
  if (memory < 0 || ftruncate(memory, FFUZZ_CHANNEL_HEADER)) die("memfd");
  if (pwrite(memory, &offer, sizeof offer, 0) != sizeof offer) die("pwrite");
}

static void prepare_target(void) {
  if (dup2(control[0], 198) < 0 || dup2(status[1], 199) < 0 || dup2(input, 0) < 0) die("dup2");
  if (!no_channel) dup2(memory, 197), set_number(FFUZZ_CHANNEL_ENV, 197);
  if (map_id >= 0) set_number("__AFL_SHM_ID", map_id), set_number("AFL_MAP_SIZE", 1 << 20);
  if (shared_input) set_number("__AFL_SHM_FUZZ_ID", input_id);
  if (persistent) setenv("__AFL_PERSISTENT", "1", 1);
  dup2(open("/dev/null", O_WRONLY), 1);
}

static uint32_t word(void) {
  uint32_t w;
  if (read(status[0], &w, 4) != 4) {
    printf("target is gone\n");
    exit(1);
  }
  return w;
}

static void say(uint32_t w) {
  if (write(control[1], &w, 4) != 4) die("control");
}

static uint32_t handshake(void) {
  uint32_t hello = word();
  printf("hello %08x\n", hello);
  if (hello == 0x41464c01u) {
    say(~hello);
    uint32_t options = word(), size = options & 1 ? word() : 0;
    printf("v1 options %x size %u final %08x\n", options, size, word());
    return size;
  }
  if (hello & 0x01000000u && (hello & 0x80000001u) == 0x80000001u) say(0x81000001u);
  return ((hello & 0x00fffffeu) >> 1) + 1;
}

static void feed(const char *path) {
  static uint8_t data[1 << 20];
  int file = open(path, O_RDONLY);
  ssize_t n = read(file, data, sizeof data);
  close(file);
  if (n < 0 || ftruncate(input, 0)) die(path);
  if (pwrite(input, data, (size_t)n, 0) != n || lseek(input, 0, SEEK_SET)) die("input");
  if (test_case) *(uint32_t *)test_case = (uint32_t)n, memcpy(test_case + 4, data, (size_t)n);
}

static void show(uint8_t *map, uint64_t size, struct ffuzz_channel *c, uint8_t *base, const char *path) {
  unsigned edges = 0, hits = 0;
  for (uint64_t i = 0; i < size; i++) edges += map[i] != 0, hits += map[i];
  printf("%s edges=%u hits=%u", path, edges, hits);
  if (!c) {
    puts("");
    memset(map, 0, size);
    return;
  }
  printf(" touched=%u\n", c->touched_count);
  struct ffuzz_domain *d = (void *)(base + c->domains_offset);
  uint32_t *dsf = (void *)(base + c->dsf_offset);
  for (uint32_t i = 0; i < c->domain_count; i++)
    for (uint32_t k = d[i].start; k < d[i].start + d[i].size; k++) {
      if (dsf[k] != d[i].initial) printf("dsf[%u] = %u\n", k, dsf[k]);
      dsf[k] = d[i].initial;
    }
  memset(map, 0, size);
  c->touched_count = 0;
}

int main(int argc, char **argv) {
  int at = 1;
  for (; at < argc && argv[at][0] == '-'; at++)
    persistent |= argv[at][1] == 'p', shared_input |= argv[at][1] == 's', no_channel |= argv[at][1] == 'n';
  input = memfd_create("input", 0);
  if (pipe2(control, O_CLOEXEC) || pipe2(status, O_CLOEXEC)) die("pipe");
  if (no_channel) {
    map_id = shmget(IPC_PRIVATE, 1 << 20, IPC_CREAT | 0600);
    segment = shmat(map_id, NULL, 0);
  }
  if (shared_input) {
    input_id = shmget(IPC_PRIVATE, (1 << 20) + 4, IPC_CREAT | 0600);
    test_case = shmat(input_id, NULL, 0);
  }
  offer_channel();
  pid_t server = fork();
  if (server == 0) {
    prepare_target();
    execv(argv[at], argv + at);
    _exit(127);
  }
  close(control[0]);
  close(status[1]);
  uint32_t size = handshake();
  struct ffuzz_channel *c = NULL;
  uint8_t *base = NULL, *map = segment;
  if (!no_channel) {
    struct ffuzz_channel head;
    if (pread(memory, &head, sizeof head, 0) != sizeof head) die("channel");
    printf("accepted %u features %u map %lu\n", head.accepted, head.features, (unsigned long)head.map_size);
    if (!head.accepted) return 1;
    base = mmap(NULL, head.size, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    c = (void *)base;
    map = base + head.map_offset;
    size = (uint32_t)head.map_size;
    struct ffuzz_module *m = (void *)(base + head.modules_offset);
    for (uint32_t i = 0; i < head.module_count; i++)
      printf("module %s start %lu counters %lu\n", strrchr(m[i].name, '/') + 1, (unsigned long)m[i].start,
             (unsigned long)m[i].counters);
    struct ffuzz_domain *d = (void *)(base + head.domains_offset);
    for (uint32_t i = 0; i < head.domain_count; i++)
      printf("domain %s start %u size %u reducer %u initial %u\n", d[i].name, d[i].start, d[i].size, d[i].reducer,
             d[i].initial);
  }
  uint32_t pid = 0;
  for (int i = at + 1; i < argc; i++) {
    feed(argv[i]);
    say(0);
    uint32_t next = word(), result = word();
    printf("status=%x %s ", result, next == pid ? "same" : "new");
    pid = next;
    const char *name = strrchr(argv[i], '/');
    show(map, size, c, base, name ? name + 1 : argv[i]);
  }
  fflush(stdout);
  kill(server, SIGTERM);
  int end;
  waitpid(server, &end, 0);
  if (end) printf("server ended %x\n", end);
  if (pid) printf("child %s\n", kill((pid_t)pid, 0) ? "gone" : "alive");
  if (map_id >= 0) shmctl(map_id, IPC_RMID, NULL);
  if (input_id >= 0) shmctl(input_id, IPC_RMID, NULL);
  return 0;
}
