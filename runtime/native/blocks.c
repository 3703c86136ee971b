/* See blocks.h. What is asked between two runs and in the handler of a breakpoint follows the rules of
 * snapshot/state.h; the tables are read-only once the breakpoints are set. */
#define _GNU_SOURCE
#include "native/blocks.h"

#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
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
#include "native/table.h"
#include "pipes.h"

/* What the fuzzer says of it is in src/exec/handshake.rs. */
#define ERROR_CODE_IS_READ_ONLY 513u

struct code {
  uint64_t base;
  uint64_t start, end; /* pages with blocks */
  uint32_t count;
  uint32_t module; /* number in ffuzz_modules */
  uint32_t *at;    /* addresses, from base; ascending */
  uint8_t *bytes;  /* what was there */
  uint8_t *hits;   /* counters */
};

static struct code codes[MOST_FILES];
static uint32_t code_count;
static int is_logging;
static volatile int was_met;

struct table {
  const uint8_t *bytes;
  size_t length;
};

static size_t bytes_of_blocks(const struct ffuzz_code_file *file) {
  return sizeof *file + ((size_t)file->count * 5 + 7) / 8 * 8;
}

static const struct ffuzz_code_site *sites_of(const struct ffuzz_code_file *file) {
  return (const void *)((const uint8_t *)file + bytes_of_blocks(file));
}

static const struct ffuzz_code_file *find(const struct table *table, const struct stat *file) {
  const struct ffuzz_block_table *head = (const void *)table->bytes;
  size_t at = sizeof *head;
  for (uint32_t i = 0; i < head->files; i++) {
    const struct ffuzz_code_file *found = (const void *)(table->bytes + at);
    if (found->device == file->st_dev && found->inode == file->st_ino) return found;
    at += bytes_of_blocks(found) + found->site_count * sizeof(struct ffuzz_code_site);
  }
  return NULL;
}

/* Where the file is not what the table was made of there is no breakpoint, nor is one where the program has one. */
static int add_blocks(struct code *code, const struct ffuzz_code_file *file) {
  const uint32_t *at = (const void *)(file + 1);
  const uint8_t *bytes = (const void *)(at + file->count);
  uintptr_t *pcs = ffuzz_pages((size_t)file->count * 2 * sizeof *pcs);
  code->at = ffuzz_pages(file->count * sizeof *code->at);
  code->bytes = ffuzz_pages(file->count);
  for (uint32_t i = 0; i < file->count; i++) {
    if (bytes[i] == BREAKPOINT || *(const uint8_t *)(code->base + at[i]) != bytes[i]) continue;
    pcs[2 * code->count] = code->base + at[i];
    code->at[code->count] = at[i];
    code->bytes[code->count++] = bytes[i];
  }
  if (!code->count) return 0;
  const struct ffuzz_code_site *sites = sites_of(file);
  uint32_t last = code->at[code->count - 1];
  if (file->site_count && sites[file->site_count - 1].at > last) last = sites[file->site_count - 1].at;
  code->start = (code->base + code->at[0]) & ~(uint64_t)(FFUZZ_PAGE - 1);
  code->end = ffuzz_page_up(code->base + last + 1);
  code->hits = ffuzz_pages(code->count);
  code->module = ffuzz_module_count;
  __sanitizer_cov_8bit_counters_init(code->hits, code->hits + ffuzz_page_up(code->count));
  __sanitizer_cov_pcs_init(pcs, pcs + 2 * (size_t)code->count);
  mprotect(pcs, (size_t)file->count * 2 * sizeof *pcs, PROT_READ);
  mprotect(code->at, file->count * sizeof *code->at, PROT_READ);
  mprotect(code->bytes, file->count, PROT_READ);
  code_count++;
  return 1;
}

static int is_mapped(const struct dl_phdr_info *info, const struct ffuzz_code_file *file) {
  const uint32_t *at = (const void *)(file + 1);
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *p = &info->dlpi_phdr[i];
    int is_code = p->p_type == PT_LOAD && p->p_flags & PF_X && p->p_flags & PF_R;
    if (is_code && at[0] >= p->p_vaddr && at[file->count - 1] < p->p_vaddr + p->p_filesz) return 1;
  }
  return 0;
}

static int add_object(struct dl_phdr_info *info, size_t size, void *data) {
  (void)size;
  struct stat of;
  const char *path = info->dlpi_name && *info->dlpi_name ? info->dlpi_name : "/proc/self/exe";
  if (code_count == MOST_FILES || stat(path, &of)) return 0;
  const struct ffuzz_code_file *file = find(data, &of);
  for (uint32_t i = 0; i < code_count; i++)
    if (codes[i].base == info->dlpi_addr) return 0;
  if (!file || !is_mapped(info, file)) return 0;
  codes[code_count] = (struct code){.base = info->dlpi_addr};
  if (!add_blocks(&codes[code_count], file)) return 0;
  ffuzz_compares_add(info->dlpi_addr, sites_of(file), file->site_count, file->first_site);
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
  if (table.bytes == MAP_FAILED) return;
  if (((const struct ffuzz_block_table *)table.bytes)->magic == FFUZZ_BLOCKS_MAGIC) dl_iterate_phdr(add_object, &table);
  munmap((void *)table.bytes, table.length);
}

static void put(const struct code *code, uint32_t block, uint8_t byte) {
  __atomic_store_n((uint8_t *)(code->base + code->at[block]), byte, __ATOMIC_RELAXED);
}

static void set_all(void) {
  for (uint32_t i = 0; i < code_count; i++)
    for (uint32_t block = 0; block < codes[i].count; block++) put(&codes[i], block, BREAKPOINT);
}

HIDDEN void ffuzz_blocks_arm(void) {
  for (uint32_t i = 0; i < code_count; i++) {
    size_t bytes = codes[i].end - codes[i].start;
    if (mprotect((void *)codes[i].start, bytes, PROT_READ | PROT_WRITE | PROT_EXEC)) {
      ffuzz_die_with_code(ERROR_CODE_IS_READ_ONLY);
      return;
    }
  }
  set_all();
}

HIDDEN void ffuzz_blocks_remove_all(void) {
  for (uint32_t i = 0; i < code_count; i++)
    for (uint32_t block = 0; block < codes[i].count; block++) put(&codes[i], block, codes[i].bytes[block]);
}

static void remove_known(const uint8_t *virgin) {
  for (uint32_t i = 0; i < code_count; i++) {
    const struct code *code = &codes[i];
    const uint8_t *unseen = virgin + ffuzz_modules[code->module].at;
    for (uint32_t block = 0; block < code->count; block++)
      if (unseen[block] != 0xff) put(code, block, code->bytes[block]);
  }
}

HIDDEN void ffuzz_blocks_log(void) {
  ffuzz_blocks_remove_all();
  ffuzz_compares_set_all();
  is_logging = 1;
}

HIDDEN void ffuzz_blocks_prepare(const uint8_t *unseen) {
  if (is_logging)
    ffuzz_compares_set_all();
  else if (unseen)
    remove_known(unseen);
  else
    set_all();
}

HIDDEN int ffuzz_blocks_were_met(void) { return was_met; }

HIDDEN void ffuzz_blocks_forget_met(void) { was_met = 0; }

HIDDEN int ffuzz_blocks_are_code(uint64_t start, uint64_t end) {
  for (uint32_t i = 0; i < code_count; i++)
    if (start >= codes[i].start && end <= codes[i].end) return 1;
  return 0;
}

static const struct code *code_at(uint64_t address) {
  for (uint32_t i = 0; i < code_count; i++)
    if (address >= codes[i].start && address < codes[i].end) return &codes[i];
  return NULL;
}

HIDDEN int ffuzz_block_hit(void *context) {
  greg_t *next = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
  uint64_t address = (uint64_t)*next - 1;
  if (is_logging) return ffuzz_compare_hit(context);
  const struct code *code = code_at(address);
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
  if (low == code->count || code->at[low] != wanted) return 0;
  code->hits[low] = 1;
  put(code, low, code->bytes[low]);
  was_met = 1;
  --*next;
  return 1;
}
