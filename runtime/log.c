/* What the second versions of functions call (llvm-passes/ffuzz-log.hpp). The log lies in the channel, so that
 * the fuzzer has that of a run that crashed, too. */
#define _GNU_SOURCE
#include <link.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "log.h"
#include "breakpoints.h"
#include "machine.h"

/* Linked objects whose functions can log. */
#define MOST_FLAGS 1024u
/* A site in a loop is logged that often, then at the occurrences whose number is a power of two. */
#define ALL_LOGGED 16u

static uint8_t *flags[MOST_FLAGS];
static uint32_t flag_count;
static int is_on;
static struct ffuzz_log *book;

void __ffuzz_log_flag(uint8_t *flag) {
  if (is_on) *flag = 1;
  if (flag_count < MOST_FLAGS) flags[flag_count++] = flag;
}

HIDDEN void ffuzz_log_attach(struct ffuzz_log *log) { book = log; }

HIDDEN int ffuzz_can_log(void) { return flag_count || (ffuzz_breakpoints && ffuzz_breakpoints->can_log()); }

/* Parts of the program and of its libraries that nobody writes to; of those that the program has when it begins to log. */
#define MOST_CONSTANT_PARTS 128u
static struct {
  uintptr_t start, end;
} constant_parts[MOST_CONSTANT_PARTS];
static uint32_t constant_part_count;

static int add_constant_parts(struct dl_phdr_info *info, size_t size, void *count) {
  (void)size;
  uint32_t *used = count;
  for (int i = 0; i < info->dlpi_phnum && *used < MOST_CONSTANT_PARTS; i++) {
    const ElfW(Phdr) *part = &info->dlpi_phdr[i];
    if (part->p_type != PT_LOAD || part->p_flags & PF_W) continue;
    uintptr_t start = info->dlpi_addr + part->p_vaddr;
    constant_parts[*used].start = start;
    constant_parts[(*used)++].end = start + part->p_memsz;
  }
  return 0;
}

HIDDEN void ffuzz_log_start(void) {
  is_on = 1;
  constant_part_count = 0;
  dl_iterate_phdr(add_constant_parts, &constant_part_count);
  for (uint32_t i = 0; i < flag_count; i++) *flags[i] = 1;
  if (ffuzz_breakpoints) ffuzz_breakpoints->start_log();
}

#if FFUZZ_HAS_SNAPSHOTS
/* Counters, entries, and what of the arena is in use. */
static uint32_t entries_of(const struct ffuzz_log *log) {
  return log->count < FFUZZ_MOST_COMPARISONS ? log->count : FFUZZ_MOST_COMPARISONS;
}

static uint32_t arena_of(const struct ffuzz_log *log) {
  return log->used < FFUZZ_LOG_ARENA ? log->used : FFUZZ_LOG_ARENA;
}

#define HEAD offsetof(struct ffuzz_log, entries)

HIDDEN uint64_t ffuzz_log_bytes(void) {
  return is_on && book ? HEAD + entries_of(book) * sizeof *book->entries + arena_of(book) : 0;
}

HIDDEN void ffuzz_log_save(void *to) {
  uint64_t entries = entries_of(book) * sizeof *book->entries;
  copy_bytes(to, (const uint8_t *)book, HEAD + entries);
  copy_bytes((uint8_t *)to + HEAD + entries, book->arena, arena_of(book));
}

HIDDEN void ffuzz_log_load(const void *from) {
  uint64_t entries = entries_of(from) * sizeof *book->entries;
  copy_bytes((uint8_t *)book, from, HEAD + entries);
  copy_bytes(book->arena, (const uint8_t *)from + HEAD + entries, arena_of(from));
}

#endif

static uint32_t add(uint32_t *word, uint32_t value) { return __atomic_fetch_add(word, value, __ATOMIC_RELAXED); }

/* The next entry; NULL if this one is left out. Occurrences count for each `which` of a site. */
static struct ffuzz_comparison *next_of(uint32_t site, uint32_t which, uint32_t how) {
  if (!book) return NULL;
  uint32_t slot = ((site ^ which) * 0x9e3779b1u) >> 18;
  uint32_t seen = add(&book->seen[slot % FFUZZ_LOG_SLOTS], 1);
  if (seen >= ALL_LOGGED && (seen & (seen - 1))) return NULL;
  if (__atomic_load_n(&book->count, __ATOMIC_RELAXED) > FFUZZ_MOST_COMPARISONS) return NULL;
  uint32_t at = add(&book->count, 1);
  if (at >= FFUZZ_MOST_COMPARISONS) return NULL;
  struct ffuzz_comparison *entry = &book->entries[at];
  entry->site = site;
  entry->how = how;
  return entry;
}

static struct ffuzz_comparison *next(uint32_t site, uint32_t how) { return next_of(site, 0, how); }

static int is_constant(const void *at) {
  uintptr_t address = (uintptr_t)at;
  for (uint32_t i = 0; i < constant_part_count; i++)
    if (address >= constant_parts[i].start && address < constant_parts[i].end) return 1;
  return 0;
}

/* The same for two operands in memory. A constant of the program counts for itself. */
static struct ffuzz_comparison *next_pair(uint32_t site, uint32_t how, const void *a, const void *b) {
  int flags = (is_constant(a) ? FFUZZ_LOG_CONSTANT_A : 0) | (is_constant(b) ? FFUZZ_LOG_CONSTANT_B : 0);
  const void *constant = flags == FFUZZ_LOG_CONSTANT_A ? a : flags == FFUZZ_LOG_CONSTANT_B ? b : NULL;
  return next_of(site, (uint32_t)(uintptr_t)constant, how | (uint32_t)flags << 16);
}

/* Puts bytes into the arena; their place. */
static uint64_t keep(const void *bytes, uint64_t length) {
  if (__atomic_load_n(&book->used, __ATOMIC_RELAXED) >= FFUZZ_LOG_ARENA) return 0;
  uint32_t at = add(&book->used, (uint32_t)length);
  if (at >= FFUZZ_LOG_ARENA || length > FFUZZ_LOG_ARENA - at) return 0;
  memcpy(book->arena + at, bytes, length);
  return at | length << 32;
}

void __ffuzz_log_values(uint32_t site, uint32_t how, uint64_t a, uint64_t b) {
  struct ffuzz_comparison *entry = next(site, how);
  if (!entry) return;
  entry->a = a;
  entry->b = b;
}

void __ffuzz_log_wide(uint32_t site, uint32_t how, uint64_t a, uint64_t a_high, uint64_t b, uint64_t b_high) {
  struct ffuzz_comparison *entry = next(site, how);
  if (!entry) return;
  uint64_t left[] = {a, a_high}, right[] = {b, b_high};
  entry->a = keep(left, how & 0xff);
  entry->b = keep(right, how & 0xff);
}

void __ffuzz_log_switch(uint32_t site, uint32_t how, uint64_t value, const uint64_t *cases, uint32_t count) {
  struct ffuzz_comparison *entry = next(site, how);
  if (!entry) return;
  entry->a = value;
  entry->b = keep(cases, (count < FFUZZ_MOST_LOGGED_CASES ? count : FFUZZ_MOST_LOGGED_CASES) * sizeof *cases);
}

static uint64_t at_most(uint64_t length) { return length < FFUZZ_LONGEST_OPERAND ? length : FFUZZ_LONGEST_OPERAND; }

void __ffuzz_log_memory(uint32_t site, uint32_t how, const void *a, const void *b, uint64_t length) {
  if (!a || !b || !length) return;
  struct ffuzz_comparison *entry = next_pair(site, how, a, b);
  if (!entry) return;
  entry->a = keep(a, at_most(length));
  entry->b = keep(b, at_most(length));
}

void __ffuzz_log_text(uint32_t site, uint32_t how, const char *a, const char *b, uint64_t length) {
  if (!a || !b || !length) return;
  struct ffuzz_comparison *entry = next_pair(site, how, a, b);
  if (!entry) return;
  entry->a = keep(a, strnlen(a, at_most(length)));
  entry->b = keep(b, strnlen(b, at_most(length)));
}

/* std::string of libstdc++ begins so. */
struct string {
  const char *text;
  uint64_t length;
};

void __ffuzz_log_string(uint32_t site, uint32_t how, const struct string *a, const void *b, uint32_t is_string) {
  struct ffuzz_comparison *entry = next_pair(site, how, a->text, is_string ? ((const struct string *)b)->text : b);
  if (!entry) return;
  const struct string *other = b;
  entry->a = keep(a->text, at_most(a->length));
  entry->b = is_string ? keep(other->text, at_most(other->length)) : keep(b, strnlen(b, FFUZZ_LONGEST_OPERAND));
}

/* Copies as much as can be read; its length. */
static uint64_t read_safely(uint8_t *to, const void *from, uint64_t length) {
  uint64_t first = FFUZZ_PAGE - (uintptr_t)from % FFUZZ_PAGE;
  if (first > length) first = length;
  struct iovec all = {to, length};
  struct iovec parts[] = {{(void *)from, first}, {(uint8_t *)from + first, length - first}};
  long got = ffuzz_kernel(SYS_process_vm_readv, ffuzz_kernel(SYS_getpid, 0, 0, 0, 0, 0, 0), (long)&all, 1, (long)parts, 2, 0);
  return got > 0 ? (uint64_t)got : 0;
}

/* Up to its NUL; 0 if it is none. */
static uint64_t length_of_text(const uint8_t *bytes, uint64_t length) {
  uint64_t at = 0;
  while (at < length && bytes[at] && (bytes[at] >= ' ' || (bytes[at] >= '\t' && bytes[at] <= '\r'))) at++;
  return at == length || bytes[at] ? 0 : at;
}

/* One of the two has to be a text. The other one may be a buffer without a NUL. */
static int cut_texts(uint8_t bytes[2][FFUZZ_LONGEST_OPERAND], uint64_t lengths[2]) {
  uint64_t texts[2];
  for (int i = 0; i < 2; i++) texts[i] = length_of_text(bytes[i], lengths[i]);
  if (texts[0] < 2 && texts[1] < 2) return 0;
  for (int i = 0; i < 2; i++) {
    uint64_t other = texts[1 - i];
    lengths[i] = texts[i] ? texts[i] : strnlen((const char *)bytes[i], lengths[i] < other ? lengths[i] : other);
  }
  return 1;
}

void __ffuzz_log_maybe(uint32_t site, uint32_t how, const void *a, const void *b, uint64_t length) {
  uint8_t bytes[2][FFUZZ_LONGEST_OPERAND];
  struct ffuzz_comparison *entry = length ? next_pair(site, how, a, b) : NULL;
  if (!entry) return;
  uint64_t wanted = at_most(length), lengths[2] = {read_safely(bytes[0], a, wanted), read_safely(bytes[1], b, wanted)};
  int is_text = !~length, is_read = lengths[0] && lengths[1];
  if (!is_read || (is_text ? !cut_texts(bytes, lengths) : lengths[0] != wanted || lengths[1] != wanted)) {
    entry->how = ~0u; /* nobody can read it */
    return;
  }
  entry->a = keep(bytes[0], lengths[0]);
  entry->b = keep(bytes[1], lengths[1]);
}

/* A length of all ones: a text. */
static uint64_t keep_part(const char *text, uint64_t length) {
  return keep(text, ~length ? at_most(length) : strnlen(text, FFUZZ_LONGEST_OPERAND));
}

/* std::string of libc++. */
struct libcxx_string {
  uint64_t capacity; /* its lowest bit: it is a long one. Otherwise the lowest byte is twice the length, */
  uint64_t length;
  const char *text; /* and the text follows that byte */
};

static struct string string_of(const void *object, int is_of_libcxx) {
  const struct string *usual = object;
  const struct libcxx_string *other = object;
  if (!is_of_libcxx) return *usual;
  if (other->capacity & 1) return (struct string){other->text, other->length};
  return (struct string){(const char *)object + 1, (other->capacity & 0xff) >> 1};
}

void __ffuzz_log_string_part(uint32_t site, uint32_t how, const void *a, uint32_t is_of_libcxx, uint64_t from,
                             uint64_t count, const char *b, uint64_t b_length) {
  struct string string = string_of(a, (int)is_of_libcxx);
  struct ffuzz_comparison *entry = from <= string.length ? next_pair(site, how, string.text, b) : NULL;
  if (!entry) return;
  uint64_t rest = string.length - from;
  entry->a = keep(string.text + from, at_most(count < rest ? count : rest));
  entry->b = keep_part(b, b_length);
}

void __ffuzz_log_search(uint32_t site, uint32_t how, const char *a, uint64_t a_length, const char *b, uint64_t b_length) {
  if (!a || !b) return;
  struct ffuzz_comparison *entry = next_pair(site, how, a, b);
  if (!entry) return;
  entry->a = keep_part(a, a_length);
  entry->b = keep_part(b, b_length);
}
