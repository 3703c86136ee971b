/* Shared memory: the channel of ffuzz first, AFL's segment second (FuzzFactory's if it has that
 * size), nothing third. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <unistd.h>

#include "connect.h"
#include "breakpoints.h"
#include "domains.h"
#include "edge-map.h"
#include "log.h"
#include "machine.h"
#include "memory.h"
#include "modules.h"
#include "pipes.h"
#include "process.h"
#include "runs.h"

#define ERROR_MAP_SIZE 1
#define ERROR_SHMAT 8
#define ERROR_MMAP 16
/* Longer lists cost more to walk than the vector pass over a whole map that replaces them. */
#define TOUCHED_MAX 65536u
/* FuzzFactory's segment: a classic edge map, and behind it the values of at most four domains. */
#define LEGACY_EDGES 65536u
#define LEGACY_KEYS (4u * 65536u)
#define LEGACY_SEGMENT (LEGACY_EDGES + LEGACY_KEYS * 4u)

static struct ffuzz_channel *channel;
static int legacy_fuzzer;

static int whole_pages(const struct module *m) {
  return (((uintptr_t)m->start | (uintptr_t)m->stop) & (FFUZZ_PAGE - 1)) == 0;
}

/* A number from the environment, or -1. */
static long number(const char *name) {
  const char *text = getenv(name);
  if (!text || !*text) return -1;
  char *end;
  errno = 0;
  long n = strtol(text, &end, 10);
  return *end || errno || n < 0 || n > INT32_MAX ? -1 : n;
}

struct name_search {
  uintptr_t address;
  char *name;
  size_t room;
};

static int name_of_object(struct dl_phdr_info *info, size_t size, void *data) {
  (void)size;
  struct name_search *search = data;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *p = &info->dlpi_phdr[i];
    if (p->p_type != PT_LOAD || search->address - info->dlpi_addr - p->p_vaddr >= p->p_memsz) continue;
    char self[4096];
    const char *path = info->dlpi_name;
    if (!path || !*path) {
      ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
      self[n > 0 ? n : 0] = 0;
      path = self;
    }
    size_t length = strlen(path);
    if (length >= search->room) path += length - search->room + 1; /* the end tells more */
    strncpy(search->name, path, search->room - 1);
    return 1;
  }
  return 0;
}

static void name_object_of(const void *address, char *name, size_t room) {
  struct name_search search = {(uintptr_t)address, name, room};
  dl_iterate_phdr(name_of_object, &search);
}

HIDDEN void ffuzz_note_late_module(const uint8_t *start) {
  if (!channel) return;
  if (!channel->late_name[0]) name_object_of(start, channel->late_name, sizeof channel->late_name);
  channel->late_count++;
}

static void write_tables(uint8_t *base, const struct ffuzz_channel *c) {
  struct ffuzz_module *modules = (void *)(base + c->modules_offset);
  for (uint32_t i = 0; i < ffuzz_module_count; i++) {
    const struct module *m = &ffuzz_modules[i];
    modules[i].start = m->at;
    modules[i].counters = m->count;
    if (m->has_no_places) continue;
    /* Counters of breakpoints are in no object. */
    const void *inside = ffuzz_breakpoints && m->pcs ? (const void *)m->pcs[0] : m->start;
    name_object_of(inside, modules[i].name, sizeof modules[i].name);
  }
  struct ffuzz_domain *domains = (void *)(base + c->domains_offset);
  for (uint32_t i = 0; i < ffuzz_domain_count; i++) {
    const struct domain *d = &ffuzz_domains[i];
    domains[i] = (struct ffuzz_domain){d->start, d->size, d->reducer, d->initial, {0}};
    memcpy(domains[i].name, d->name, sizeof d->name);
  }
}

static uint64_t absent_counters(uint64_t map_size, int detours) {
  uint64_t present = 0;
  for (uint32_t i = 0; i < ffuzz_module_count; i++) present += ffuzz_modules[i].count;
  if (!present) return 0;
  return map_size - present + (ffuzz_breakpoints ? ffuzz_breakpoints->absent(detours) : 0);
}

/* Of a harness with our driver, which calls them in a process of its own. */
__attribute__((weak)) HIDDEN extern void ffuzz_driver_make_inputs(void);
__attribute__((weak)) extern size_t LLVMFuzzerCustomMutator(uint8_t *, size_t, size_t, unsigned int);
__attribute__((weak)) extern size_t LLVMFuzzerCustomCrossOver(const uint8_t *, size_t, const uint8_t *, size_t,
                                                              uint8_t *, size_t, unsigned int);

static uint32_t input_functions(void) {
  if (!ffuzz_driver_make_inputs) return 0;
  return (LLVMFuzzerCustomMutator ? FFUZZ_FEATURE_MUTATOR : 0) |
         (LLVMFuzzerCustomCrossOver ? FFUZZ_FEATURE_CROSSOVER : 0);
}

static void lay_out(struct ffuzz_channel *c) {
  c->map_size = ffuzz_map_size();
  c->absent = absent_counters(c->map_size, 1);
  c->absent_alone = absent_counters(c->map_size, 0);
  c->module_count = ffuzz_module_count;
  c->domain_count = ffuzz_domain_count;
  c->dsf_total = ffuzz_dsf_total;
  c->touched_capacity = ffuzz_dsf_total < TOUCHED_MAX ? ffuzz_dsf_total : TOUCHED_MAX;
  c->touched_count = 0;
  c->features = 0;
  for (uint32_t i = 0; i < ffuzz_module_count; i++)
    if (!whole_pages(&ffuzz_modules[i])) c->features |= FFUZZ_FEATURE_COPIED_COUNTERS;
  c->features |= input_functions();
  c->features |= c->offered & (FFUZZ_FEATURE_RUNS | (FFUZZ_HAS_SNAPSHOTS ? FFUZZ_FEATURE_SNAPSHOT : 0));
  if (c->features & FFUZZ_FEATURE_RUNS) {
    /* With breakpoints a map shows what is new, not the path. */
    c->features |= ffuzz_breakpoints ? 0 : FFUZZ_FEATURE_PATHS;
    c->features |= ffuzz_can_log() ? FFUZZ_FEATURE_LOG : 0;
  }
  c->modules_offset = FFUZZ_CHANNEL_HEADER;
  c->domains_offset = c->modules_offset + ffuzz_page_up(c->module_count * sizeof(struct ffuzz_module));
  c->map_offset = c->domains_offset + ffuzz_page_up(c->domain_count * sizeof(struct ffuzz_domain));
  c->dsf_offset = c->map_offset + ffuzz_page_up(c->map_size);
  c->touched_offset = c->dsf_offset + ffuzz_page_up((uint64_t)c->dsf_total * 4);
  c->arena_offset = c->touched_offset + ffuzz_page_up((uint64_t)c->touched_capacity * 4);
  c->log_offset = c->arena_offset + FFUZZ_ARENA;
  c->virgin_offset = c->log_offset + ffuzz_page_up(sizeof(struct ffuzz_log));
  c->bars_offset = c->virgin_offset + ffuzz_page_up(c->map_size);
  c->size = c->bars_offset + ffuzz_page_up((uint64_t)c->dsf_total * 4);
}

/* Makes the pages of each aligned module the pages of the channel. */
static int map_modules(int fd, uint64_t map_offset) {
  for (uint32_t i = 0; i < ffuzz_module_count; i++) {
    struct module *m = &ffuzz_modules[i];
    if (!whole_pages(m)) continue;
    void *at = mmap(m->start, ffuzz_page_up(m->count), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                    fd, (off_t)(map_offset + m->at));
    if (at == MAP_FAILED) return 0;
    m->mapped = 1;
  }
  return 1;
}

/* Puts the channel's pages where the domain maps are. */
static int map_domains(int fd, uint64_t dsf_offset) {
  if (!ffuzz_dsf_total) return 1;
  return mmap(__fuzzfactory_dsf_map, ffuzz_domains_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
              (off_t)dsf_offset) != MAP_FAILED;
}

/* Tells the fuzzer, whose header it has to be, that it will not be. */
static int refuse(int fd) {
  uint32_t reason = (uint32_t)errno;
  if (pwrite(fd, &reason, sizeof reason, offsetof(struct ffuzz_channel, refused)) < 0) return 0;
  return 0;
}

/* 1 when the channel is in use. A descriptor that is not a channel (it is stale in a program that
 * the target started) is left alone. */
static int use_channel(void) {
  long fd = number(FFUZZ_CHANNEL_ENV);
  struct ffuzz_channel head;
  if (fd < 0 || pread((int)fd, &head, sizeof head, 0) != (ssize_t)sizeof head) return 0;
  if (head.magic != FFUZZ_CHANNEL_MAGIC || head.version != FFUZZ_CHANNEL_VERSION) return 0;
  lay_out(&head);
  if (ftruncate((int)fd, (off_t)head.size)) return refuse((int)fd);
  uint8_t *base = mmap(NULL, head.size, PROT_READ | PROT_WRITE, MAP_SHARED, (int)fd, 0);
  if (base == MAP_FAILED) return refuse((int)fd);
  if (!map_modules((int)fd, head.map_offset) || !map_domains((int)fd, head.dsf_offset)) {
    ffuzz_die_with_code(ERROR_MMAP);
    return 0;
  }
  close((int)fd);
  struct ffuzz_channel *c = (void *)base;
  ffuzz_edges_attach(base + head.map_offset, head.map_size, 0);
  write_tables(base, &head);
  ffuzz_rejected_attach(&c->rejected);
  ffuzz_domains_attach(&c->touched_count, (void *)(base + head.touched_offset), head.touched_capacity);
  if (head.features & FFUZZ_FEATURE_RUNS) ffuzz_runs_attach(base, &head);
  if (head.features & FFUZZ_FEATURE_LOG) ffuzz_log_attach((void *)(base + head.log_offset));
  head.accepted = 0;
  *c = head;
  channel = c;
  __atomic_store_n(&c->accepted, FFUZZ_CHANNEL_VERSION, __ATOMIC_RELEASE);
  return 1;
}

/* A second mapping of `bytes` shared pages, in place of what is at `to`. An old size of 0 asks for
 * it. */
static void map_again(void *from, uint64_t bytes, void *to) {
  if (mremap(from, 0, ffuzz_page_up(bytes), MREMAP_MAYMOVE | MREMAP_FIXED, to) == MAP_FAILED)
    ffuzz_die_with_code(ERROR_MMAP);
}

HIDDEN uint32_t ffuzz_legacy_domains(void) {
  return ffuzz_domain_count <= FFUZZ_LEGACY_DOMAINS && ffuzz_dsf_total <= LEGACY_KEYS ? ffuzz_domain_count : 0;
}

HIDDEN int ffuzz_speaks_legacy(void) { return legacy_fuzzer; }

static void use_legacy_domains(uint8_t *segment) {
  static uint32_t nobody_looks;
  if (ffuzz_legacy_domains()) {
    map_again(segment + LEGACY_EDGES, ffuzz_domains_bytes(), __fuzzfactory_dsf_map);
    ffuzz_domains_attach(&nobody_looks, NULL, 0);
  } else if (ffuzz_domain_count) {
    ffuzz_say("[!] WARNING: This fuzzer has room for 4 domains and 262144 keys: it is shown none.\n"
              "[!] Build the target with fewer WAYPOINTS, or use ffuzz, which knows no such limit.\n");
  }
}

/* A segment that is too small for us is left alone when the fuzzer can learn the true size from
 * the hello (it then starts us again); without AFL_MAP_SIZE it would not look. FuzzFactory's own
 * fuzzer learns nothing: counters beyond its map are copied into it, modulo its size. */
static void use_segment(void) {
  const char *id = getenv("__AFL_SHM_ID");
  if (!id || !*id) return;
  struct shmid_ds info;
  long key = number("__AFL_SHM_ID");
  if (key < 0 || shmctl((int)key, IPC_STAT, &info)) {
    ffuzz_die_with_code(ERROR_SHMAT);
    return;
  }
  legacy_fuzzer = info.shm_segsz == LEGACY_SEGMENT && number("AFL_MAP_SIZE") != LEGACY_SEGMENT;
  uint64_t size = legacy_fuzzer ? LEGACY_EDGES : ffuzz_map_size();
  if (info.shm_segsz < size) {
    if (number("AFL_MAP_SIZE") < 0) ffuzz_die_with_code(ERROR_MAP_SIZE);
    return;
  }
  uint8_t *segment = shmat((int)key, NULL, 0);
  if (segment == (void *)-1) {
    ffuzz_die_with_code(ERROR_SHMAT);
    return;
  }
  ffuzz_edges_attach(segment, size, 1);
  for (uint32_t i = 0; i < ffuzz_module_count; i++) {
    struct module *m = &ffuzz_modules[i];
    if (!whole_pages(m) || m->at + m->count > size) continue;
    map_again(segment + m->at, m->count, m->start);
    m->mapped = 1;
  }
  if (legacy_fuzzer) use_legacy_domains(segment);
}

HIDDEN void ffuzz_connect(void) {
  if (ffuzz_frozen) return;
  ffuzz_frozen = 1;
  if (!use_channel()) use_segment();
  ffuzz_edges_start();
}
