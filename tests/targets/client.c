/* A fuzzer in miniature for tests of the runtime: offers the channel, plays the fork server, runs
 * each file (shared-memory test cases too, with -s) and prints what it saw.
 *
 *   client [-p] [-s] [-n] [-l] TARGET FILE...
 *
 * -p: __AFL_PERSISTENT; -n: no channel, SysV map; -l: no channel, the segment of FuzzFactory */
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

#define LEGACY_SEGMENT 1114112

static int control[2], status[2], memory = -1, input, persistent, shared_input, no_channel;
static int map_id = -1, input_id = -1, legacy;
static uint8_t *segment, *test_case;
/* Where the domains are, and their touched list if there is one. */
static struct ffuzz_domain *domains;
static uint32_t *dsf, *touched, *touched_list, domain_count, touched_capacity;

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
  if (map_id >= 0) set_number("__AFL_SHM_ID", map_id);
  if (map_id >= 0 && !legacy) set_number("AFL_MAP_SIZE", 1 << 20);
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

/* FuzzFactory's: the number of domains, and their records: start, end, reducer, initial value; no names.
 * Its fuzzer reads what is there and does not wait for more, so all has to be one packet of the pipe. */
static uint32_t legacy_domains(void) {
  uint32_t words[1 + 4 * 4];
  ssize_t n = read(status[0], words, sizeof words);
  if (n < 4 || words[0] > 4) die("hello");
  printf("hello %08x\n", words[0]);
  if (n != 4 + 16 * (ssize_t)words[0]) {
    printf("hello is short: %zd bytes for %u domains\n", n, words[0]);
    exit(1);
  }
  domains = calloc(words[0] + 1, sizeof *domains);
  dsf = (uint32_t *)(segment + 65536);
  for (domain_count = 0; domain_count < words[0]; domain_count++) {
    const uint32_t *record = &words[1 + 4 * domain_count];
    domains[domain_count] = (struct ffuzz_domain){record[0], record[1] - record[0], record[2], record[3], "-"};
  }
  return 65536;
}

static uint32_t handshake(void) {
  if (legacy) return legacy_domains();
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

/* A changed key that is not in the list is lost: a list is complete unless it says that it is not. */
static int is_unlisted(uint32_t key) {
  if (!touched || *touched > touched_capacity) return 0;
  for (uint32_t i = 0; i < *touched; i++)
    if (touched_list[i] == key) return 0;
  return 1;
}

/* Prints the maps and brings them back to their state before a run. */
static void show(uint8_t *map, uint64_t size, const char *path) {
  unsigned edges = 0, hits = 0;
  for (uint64_t i = 0; i < size; i++) edges += map[i] != 0, hits += map[i];
  printf("%s edges=%u hits=%u", path, edges, hits);
  if (touched) printf(" touched=%u", *touched);
  puts("");
  for (uint32_t i = 0; i < domain_count; i++)
    for (uint32_t k = domains[i].start; k < domains[i].start + domains[i].size; k++) {
      if (dsf[k] != domains[i].initial) printf("dsf[%u] = %u%s\n", k, dsf[k], is_unlisted(k) ? " unlisted" : "");
      dsf[k] = domains[i].initial;
    }
  if (touched) *touched = 0;
  memset(map, 0, size);
}

/* Returns the edge map. */
static uint8_t *read_channel(uint32_t *size) {
  struct ffuzz_channel head;
  if (pread(memory, &head, sizeof head, 0) != sizeof head) die("channel");
  printf("accepted %u features %u map %lu\n", head.accepted, head.features, (unsigned long)head.map_size);
  if (!head.accepted) exit(1);
  uint8_t *base = mmap(NULL, head.size, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  struct ffuzz_module *m = (void *)(base + head.modules_offset);
  for (uint32_t i = 0; i < head.module_count; i++)
    printf("module %s start %lu counters %lu\n", m[i].name[0] ? strrchr(m[i].name, '/') + 1 : "-",
           (unsigned long)m[i].start, (unsigned long)m[i].counters);
  domains = (void *)(base + head.domains_offset);
  domain_count = head.domain_count;
  dsf = (void *)(base + head.dsf_offset);
  touched = &((struct ffuzz_channel *)base)->touched_count;
  touched_list = (void *)(base + head.touched_offset);
  touched_capacity = head.touched_capacity;
  *size = (uint32_t)head.map_size;
  return base + head.map_offset;
}

int main(int argc, char **argv) {
  int at = 1;
  for (; at < argc && argv[at][0] == '-'; at++)
    persistent |= argv[at][1] == 'p', shared_input |= argv[at][1] == 's', no_channel |= argv[at][1] == 'n',
        legacy |= argv[at][1] == 'l';
  no_channel |= legacy;
  input = memfd_create("input", 0);
  if (pipe2(control, O_CLOEXEC) || pipe2(status, O_CLOEXEC | (legacy ? O_DIRECT : 0))) die("pipe");
  if (no_channel) {
    map_id = shmget(IPC_PRIVATE, legacy ? LEGACY_SEGMENT : 1 << 20, IPC_CREAT | 0600);
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
  uint8_t *map = no_channel ? segment : read_channel(&size);
  for (uint32_t i = 0; i < domain_count; i++)
    printf("domain %s start %u size %u reducer %u initial %u\n", domains[i].name, domains[i].start, domains[i].size,
           domains[i].reducer, domains[i].initial);
  uint32_t pid = 0;
  for (int i = at + 1; i < argc; i++) {
    feed(argv[i]);
    say(0);
    uint32_t next = word(), result = word();
    printf("status=%x %s ", result, next == pid ? "same" : "new");
    pid = next;
    const char *name = strrchr(argv[i], '/');
    show(map, size, name ? name + 1 : argv[i]);
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
