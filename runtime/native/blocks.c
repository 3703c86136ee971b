/* See blocks.h. What is asked between two runs and in the handler of a breakpoint follows the rules of
 * snapshot/state.h; the tables are read-only once the breakpoints are set. */
#define _GNU_SOURCE
#include "native/blocks.h"

#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "counters.h"
#include "machine.h"
#include "memory.h"
#include "modules.h"
#include "native/callers.h"
#include "native/compares.h"
#include "native/detours.h"
#include "native/table.h"
#include "pipes.h"

/* What the fuzzer says of it is in src/exec/handshake.rs. */
#define ERROR_CODE_IS_READ_ONLY 513u

/* How a block is counted. */
enum how {
  NOT_AT_ALL, /* it is not what the file has, or begins with a breakpoint of the program */
  BY_BREAKPOINT,
  BY_COPY, /* or by a breakpoint, without detours */
  BY_OTHERS, /* the same, with a copy that does not count it */
};

/* Pages with blocks; a file has a part for each segment of code. */
#define MOST_PARTS 8u
struct part {
  uint64_t start, end;
};

struct code {
  uint64_t base;
  struct part parts[MOST_PARTS];
  uint32_t part_count;
  uint32_t count;
  uint32_t edges; /* counters after those of the blocks, for copies */
  uint32_t module; /* number in ffuzz_modules */
  uint32_t identity; /* see table.h */
  uint32_t *at;    /* addresses, from base; ascending */
  uint8_t *bytes;  /* what is there without a breakpoint */
  uint8_t *how;    /* enum how */
  uint32_t *placed, placed_count; /* blocks with a breakpoint; ascending */
  uint8_t *hits;   /* counters */
  struct detours detours;
};

static struct code codes[MOST_FILES];
static uint32_t code_count;
static int is_logging;
static int has_detours; /* they are set */
static int uses_detours = 1;
static int has_executions;
static volatile int was_met;

struct table {
  const uint8_t *bytes;
  size_t length;
};

/* What follows a struct ffuzz_code_file. */
struct contents {
  const uint32_t *at;
  const uint8_t *bytes, *counts;
  struct detour_table detours;
  const struct ffuzz_code_site *sites;
  const struct ffuzz_code_file *next;
};

static struct contents contents_of(const struct ffuzz_code_file *file) {
  struct contents c = {.at = (const void *)(file + 1)};
  struct detour_table *d = &c.detours;
  *d = (struct detour_table){.jump_count = file->jump_count, .field_count = file->field_count, .code_bytes = file->code_bytes};
  d->jumps = (const void *)(c.at + file->count);
  d->fields = (const void *)(d->jumps + d->jump_count);
  c.bytes = (const void *)(d->fields + d->field_count);
  c.counts = c.bytes + file->count;
  d->code = c.counts + file->count;
  size_t bytes = (size_t)(d->code + d->code_bytes - (const uint8_t *)file);
  c.sites = (const void *)((const uint8_t *)file + (bytes + 7) / 8 * 8);
  c.next = (const void *)(c.sites + file->site_count);
  return c;
}

static const struct ffuzz_code_file *find(const struct table *table, const struct stat *file) {
  const struct ffuzz_block_table *head = (const void *)table->bytes;
  const struct ffuzz_code_file *next = (const void *)(head + 1);
  for (uint32_t i = 0; i < head->files; i++) {
    if (next->device == file->st_dev && next->inode == file->st_ino) return next;
    next = contents_of(next).next;
  }
  return NULL;
}

static int is_as_in_file(const struct code *code, const struct contents *contents) {
  for (uint32_t i = 0; i < code->count; i++)
    if (*(const uint8_t *)(code->base + code->at[i]) != contents->bytes[i]) return 0;
  return 1;
}

/* Where the file is not what the table was made of there is no breakpoint, nor is one where the program has one. */
static void add_blocks(struct code *code, const struct ffuzz_code_file *file, const struct contents *contents,
                       const struct image *image) {
  uint32_t last = file->count - 1;
  const struct detour_table *detours = &contents->detours;
  code->count = file->count;
  code->edges = file->edges;
  code->at = ffuzz_pages(file->count * sizeof *code->at);
  memcpy(code->at, contents->at, file->count * sizeof *code->at);
  uint32_t counters = file->count + file->edges;
  code->detours.base = code->base;
  struct counted counted = {counters, has_executions ? file->count : 0};
  if (uses_detours && is_as_in_file(code, contents))
    code->hits = ffuzz_detours_place(&code->detours, detours, image, counted);
  if (!code->hits) code->hits = ffuzz_pages(counters);
  code->bytes = ffuzz_pages(file->count);
  memcpy(code->bytes, contents->bytes, file->count);
  code->how = ffuzz_pages(file->count);
  for (uint32_t i = 0; i < file->count; i++) {
    uint8_t present = *(const uint8_t *)(code->base + code->at[i]);
    if (present != code->bytes[i] || present == BREAKPOINT) continue;
    code->how[i] = BY_BREAKPOINT;
    if (code->detours.count && contents->counts[i] != FFUZZ_COUNTED_BY_BREAKPOINT)
      code->how[i] = contents->counts[i] == FFUZZ_COUNTED_BY_COPY ? BY_COPY : BY_OTHERS;
  }
  uintptr_t *pcs = ffuzz_pages((size_t)counters * 2 * sizeof *pcs);
  for (uint32_t i = 0; i < counters; i++) pcs[2 * i] = code->base + contents->at[i < file->count ? i : last];
  code->placed = ffuzz_pages(file->count * sizeof *code->placed);
  code->module = ffuzz_module_count;
  code->identity = file->identity;
  __sanitizer_cov_8bit_counters_init(code->hits, code->hits + ffuzz_page_up(counters));
  __sanitizer_cov_pcs_init(pcs, pcs + 2 * (size_t)counters);
  mprotect(pcs, (size_t)counters * 2 * sizeof *pcs, PROT_READ);
  mprotect(code->at, file->count * sizeof *code->at, PROT_READ);
  mprotect(code->bytes, file->count, PROT_READ);
  mprotect(code->how, file->count, PROT_READ);
  code_count++;
}

/* All of it: its code refers to its data. */
static struct image image_of(const struct dl_phdr_info *info) {
  struct image image = {UINT64_MAX, 0};
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *p = &info->dlpi_phdr[i];
    if (p->p_type != PT_LOAD) continue;
    uint64_t start = info->dlpi_addr + p->p_vaddr, end = start + p->p_memsz;
    if (start < image.start) image.start = start;
    if (end > image.end) image.end = end;
  }
  return image;
}

/* Adds those of these bytes that lie in the segment to its part. */
static void widen(struct part *part, const ElfW(Phdr) *p, uint64_t first, uint64_t last) {
  if (first < p->p_vaddr || last >= p->p_vaddr + p->p_filesz) return;
  if (first < part->start) part->start = first;
  if (last >= part->end) part->end = last + 1;
}

/* Finds the pages of code in which something is changed: a part for each executable segment. False if a block lies in
 * none, because then the file is not what the table was made of. */
static int find_parts(struct code *code, const struct dl_phdr_info *info, const struct ffuzz_code_file *file,
                      const struct contents *contents) {
  uint32_t found = 0;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *p = &info->dlpi_phdr[i];
    struct part part = {UINT64_MAX, 0};
    if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) || !(p->p_flags & PF_R)) continue;
    for (uint32_t k = 0; k < file->count; k++) {
      found += contents->at[k] >= p->p_vaddr && contents->at[k] < p->p_vaddr + p->p_filesz;
      widen(&part, p, contents->at[k], contents->at[k]);
    }
    for (uint32_t k = 0; k < file->site_count; k++) widen(&part, p, contents->sites[k].at, contents->sites[k].at);
    for (uint32_t k = 0; k < contents->detours.jump_count; k++)
      widen(&part, p, contents->detours.jumps[k].from, contents->detours.jumps[k].from + JUMP_BYTES - 1);
    if (!part.end) continue;
    if (code->part_count == MOST_PARTS) return 0;
    code->parts[code->part_count++] = (struct part){(code->base + part.start) & ~(uint64_t)(FFUZZ_PAGE - 1),
                                                    ffuzz_page_up(code->base + part.end)};
  }
  return found == file->count;
}

static int add_object(struct dl_phdr_info *info, size_t size, void *data) {
  (void)size;
  struct stat of;
  const char *path = info->dlpi_name && *info->dlpi_name ? info->dlpi_name : "/proc/self/exe";
  if (code_count == MOST_FILES || stat(path, &of)) return 0;
  const struct ffuzz_code_file *file = find(data, &of);
  for (uint32_t i = 0; i < code_count; i++)
    if (codes[i].base == info->dlpi_addr) return 0;
  if (!file) return 0;
  codes[code_count] = (struct code){.base = info->dlpi_addr};
  struct contents contents = contents_of(file);
  if (!find_parts(&codes[code_count], info, file, &contents)) return 0;
  struct image image = image_of(info);
  add_blocks(&codes[code_count], file, &contents, &image);
  ffuzz_compares_add(info->dlpi_addr, contents.sites, file->site_count, file->first_site);
  ffuzz_callers_add(info, file->identity);
  return 0;
}

HIDDEN void ffuzz_blocks_read(void) {
  const char *number = getenv(FFUZZ_BLOCKS_ENV);
  int fd = number ? atoi(number) : -1;
  struct stat of;
  if (fd < 0 || fstat(fd, &of) || of.st_size < (off_t)sizeof(struct ffuzz_block_table)) return;
  struct table table = {mmap(NULL, (size_t)of.st_size, PROT_READ, MAP_PRIVATE, fd, 0), (size_t)of.st_size};
  close(fd);
  unsetenv(FFUZZ_BLOCKS_ENV);
  const char *refused = getenv("FFUZZ_NO_DETOURS");
  uses_detours = !refused || !strcmp(refused, "0");
  if (table.bytes == MAP_FAILED) return;
  const struct ffuzz_block_table *head = (const void *)table.bytes;
  has_executions = head->has_executions;
  if (head->magic == FFUZZ_BLOCKS_MAGIC) dl_iterate_phdr(add_object, &table);
  munmap((void *)table.bytes, table.length);
}

static int has_breakpoint(const struct code *code, uint32_t block) {
  return code->how[block] == BY_BREAKPOINT || (code->how[block] != NOT_AT_ALL && !uses_detours);
}

static void list_breakpoints(struct code *code) {
  size_t bytes = code->count * sizeof *code->placed;
  mprotect(code->placed, bytes, PROT_READ | PROT_WRITE);
  code->placed_count = 0;
  for (uint32_t block = 0; block < code->count; block++)
    if (has_breakpoint(code, block)) code->placed[code->placed_count++] = block;
  mprotect(code->placed, bytes, PROT_READ);
}

HIDDEN uint64_t ffuzz_blocks_absent(int detours) {
  uint64_t absent = 0;
  detours = detours && uses_detours;
  for (uint32_t i = 0; i < code_count; i++) {
    const struct code *code = &codes[i];
    for (uint32_t block = 0; block < code->count; block++)
      absent += code->how[block] == NOT_AT_ALL || (code->how[block] == BY_OTHERS && detours);
    absent += detours && code->detours.count ? 0 : code->edges;
  }
  return absent;
}

static void put(const struct code *code, uint32_t block, uint8_t byte) {
  __atomic_store_n((uint8_t *)(code->base + code->at[block]), byte, __ATOMIC_RELAXED);
}

static void set_all(void) {
  for (uint32_t i = 0; i < code_count; i++)
    for (uint32_t k = 0; k < codes[i].placed_count; k++) put(&codes[i], codes[i].placed[k], BREAKPOINT);
}

static void set_detours(void) {
  for (uint32_t i = 0; i < code_count; i++) ffuzz_detours_set(&codes[i].detours);
  has_detours = 1;
}

HIDDEN void ffuzz_blocks_arm(void) {
  for (uint32_t i = 0; i < code_count; i++) list_breakpoints(&codes[i]);
  for (uint32_t i = 0; i < code_count; i++)
    for (uint32_t k = 0; k < codes[i].part_count; k++) {
      const struct part *part = &codes[i].parts[k];
      if (mprotect((void *)part->start, part->end - part->start, PROT_READ | PROT_WRITE | PROT_EXEC)) {
        ffuzz_die_with_code(ERROR_CODE_IS_READ_ONLY);
        return;
      }
    }
  set_all();
  set_detours();
}

HIDDEN void ffuzz_blocks_remove_all(void) {
  for (uint32_t i = 0; i < code_count; i++) {
    const struct code *code = &codes[i];
    ffuzz_detours_remove(&code->detours);
    for (uint32_t k = 0; k < code->placed_count; k++) put(code, code->placed[k], code->bytes[code->placed[k]]);
  }
  has_detours = 0;
}

HIDDEN void ffuzz_blocks_leave_detours(void) {
  ffuzz_blocks_remove_all();
  uses_detours = 0;
  for (uint32_t i = 0; i < code_count; i++) list_breakpoints(&codes[i]);
  set_all();
}

static void remove_known(const uint8_t *virgin) {
  for (uint32_t i = 0; i < code_count; i++) {
    const struct code *code = &codes[i];
    const uint8_t *unseen = virgin + ffuzz_modules[code->module].at;
    for (uint32_t k = 0; k < code->placed_count; k++)
      if (unseen[code->placed[k]] != 0xff) put(code, code->placed[k], code->bytes[code->placed[k]]);
  }
}

HIDDEN void ffuzz_blocks_log(void) {
  ffuzz_blocks_remove_all();
  ffuzz_compares_set_all();
  is_logging = 1;
}

HIDDEN void ffuzz_blocks_prepare(const uint8_t *unseen) {
  if (is_logging) {
    ffuzz_compares_set_all();
    return;
  }
  if (uses_detours && !has_detours) set_detours();
  if (unseen)
    remove_known(unseen);
  else
    set_all();
}

/* No run is under way, so nothing counts meanwhile. */
HIDDEN void ffuzz_blocks_take_executions(void (*take)(uint32_t file, uint32_t at, uint64_t count)) {
  for (uint32_t i = 0; i < code_count; i++) {
    const struct code *code = &codes[i];
    uint64_t *executions = code->detours.executions;
    for (uint32_t block = 0; executions && block < code->count; block++) {
      if (!executions[block]) continue;
      if (take) take(code->identity, code->at[block], executions[block]);
      executions[block] = 0;
    }
  }
}

HIDDEN int ffuzz_blocks_have_executions(uint64_t start, uint64_t end) {
  for (uint32_t i = 0; i < code_count; i++) {
    uint64_t first = (uint64_t)codes[i].detours.executions;
    if (first && start < ffuzz_page_up(first + codes[i].count * sizeof(uint64_t)) && end > first) return 1;
  }
  return 0;
}

HIDDEN int ffuzz_blocks_were_met(void) { return was_met; }

HIDDEN void ffuzz_blocks_forget_met(void) { was_met = 0; }

static const struct code *code_of(uint64_t start, uint64_t end) {
  for (uint32_t i = 0; i < code_count; i++)
    for (uint32_t k = 0; k < codes[i].part_count; k++)
      if (start >= codes[i].parts[k].start && end <= codes[i].parts[k].end) return &codes[i];
  return NULL;
}

HIDDEN int ffuzz_blocks_are_code(uint64_t start, uint64_t end) { return code_of(start, end) != NULL; }

HIDDEN int ffuzz_block_hit(void *context) {
  greg_t *next = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
  uint64_t address = (uint64_t)*next - 1;
  if (is_logging) return ffuzz_compare_hit(context);
  const struct code *code = code_of(address, address + 1);
  if (!code) return 0;
  uint64_t wanted = address - code->base;
  uint32_t low = 0, high = code->count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (code->at[middle] < wanted)
      low = middle + 1;
    else
      high = middle;
  }
  if (low == code->count || code->at[low] != wanted || !has_breakpoint(code, low)) return 0;
  code->hits[low] = 1;
  put(code, low, code->bytes[low]);
  was_met = 1;
  --*next;
  return 1;
}
