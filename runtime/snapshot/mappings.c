/* Which memory there is: the mappings of the program before its first run, and our own. */
#define _GNU_SOURCE
#include "snapshot/mappings.h"

#if FFUZZ_HAS_SNAPSHOTS
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "breakpoints.h"
#include "process.h"

/* Places of `struct saved` and `struct changes`; 0: there is none. */
static long reserved[2];

/* Empty memory at `place`, or where there is room (0). Returns a negative error. */
static long map_fenced(long place, uint64_t bytes) {
  uint64_t inside = round_up(bytes ? bytes : 1);
  long flags = MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE | (place ? MAP_FIXED : 0);
  long at = CALL(mmap, place ? place - FFUZZ_PAGE : 0, inside + 2 * FFUZZ_PAGE, PROT_NONE, flags, -1, 0);
  if (at < 0 && at > -4096) return at;
  long error = CALL(mprotect, at + FFUZZ_PAGE, inside, PROT_READ | PROT_WRITE);
  return error ? error : at + FFUZZ_PAGE;
}

static long fence(long place, uint64_t bytes) {
  long at = map_fenced(place, bytes);
  if (at < 0 && at > -4096) ffuzz_give_up(FFUZZ_WHY_MEMORY, -at);
  return at;
}

/* Before the first fork: a program that reads its list of mappings at the startup finds the same in a run by fork. */
HIDDEN void ffuzz_memory_reserve(void) {
  const uint64_t bytes[] = {sizeof *ffuzz_saved, sizeof *ffuzz_changes};
  for (int i = 0; i < 2; i++) {
    long at = map_fenced(0, bytes[i]);
    reserved[i] = at < 0 && at > -4096 ? 0 : at;
  }
}

static void *note_own(long inside, uint64_t bytes, int is_sealed) {
  struct own *own = &ffuzz_saved->own[ffuzz_saved->own_count++];
  *own = (struct own){(uint64_t)inside, (uint64_t)inside + round_up(bytes ? bytes : 1), is_sealed};
  return (void *)inside;
}

/* With an inaccessible page on both sides, so that it neither runs over nor grows together with memory of
 * the program. Shared memory is not put back. */
HIDDEN void *ffuzz_own_memory(uint64_t bytes) { return note_own(fence(0, bytes), bytes, 1); }

HIDDEN void *ffuzz_own_notes(uint64_t bytes) { return note_own(fence(0, bytes), bytes, 0); }

HIDDEN void ffuzz_memory_start(void) {
  ffuzz_saved = (void *)fence(reserved[0], sizeof *ffuzz_saved);
  ffuzz_changes = (void *)fence(reserved[1], sizeof *ffuzz_changes);
  note_own((long)ffuzz_saved, sizeof *ffuzz_saved, 1);
  note_own((long)ffuzz_changes, sizeof *ffuzz_changes, 0);
}

/* From now on who writes there gets a signal. */
HIDDEN void ffuzz_memory_seal(void) {
  for (uint32_t i = 0; i < ffuzz_saved->own_count; i++) {
    const struct own *own = &ffuzz_saved->own[i];
    if (own->is_sealed) CALL(mprotect, own->start, own->end - own->start, PROT_READ);
  }
}

/* The inaccessible pages count. */
HIDDEN int ffuzz_is_own(uint64_t start, uint64_t end) {
  for (uint32_t i = 0; i < ffuzz_saved->own_count; i++) {
    const struct own *own = &ffuzz_saved->own[i];
    if (start < own->end + FFUZZ_PAGE && end > own->start - FFUZZ_PAGE) return 1;
  }
  return 0;
}

/* The first mapping that ends behind this address; NULL if there is none. */
HIDDEN struct mapping *ffuzz_mapping_behind(uint64_t address) {
  struct mapping *mappings = ffuzz_saved->mappings;
  uint32_t low = 0, high = ffuzz_saved->mapping_count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (mappings[middle].end > address)
      high = middle;
    else
      low = middle + 1;
  }
  return low < ffuzz_saved->mapping_count ? &mappings[low] : NULL;
}

static uint64_t hexadecimal(const char **at) {
  uint64_t number = 0;
  for (;; (*at)++) {
    char c = **at;
    if (c >= '0' && c <= '9')
      number = number << 4 | (uint64_t)(c - '0');
    else if (c >= 'a' && c <= 'f')
      number = number << 4 | (uint64_t)(c - 'a' + 10);
    else
      return number;
  }
}

static void skip_word(const char **at) {
  while (**at != ' ') (*at)++;
  while (**at == ' ') (*at)++;
}

static int begins_with(const char *text, const char *word) {
  while (*word && *text == *word) text++, word++;
  return !*word;
}

/* Memory that the program shares with others, or with its own next run, cannot be put back. Ours may be:
 * the channel is a file of this name, a test case lies at a known address. */
static void refuse_foreign_shared(const struct mapping *m, const char *name) {
  uint64_t test_case = (uint64_t)__afl_fuzz_ptr;
  if (ffuzz_is_own(m->start, m->end) || begins_with(name, "/memfd:ffuzz-channel")) return;
  if (test_case >= m->start && test_case < m->end) return;
  if (ffuzz_breakpoints && ffuzz_breakpoints->is_shared(m->start, m->end)) return;
  ffuzz_give_up(FFUZZ_WHY_SHARED, 0);
}

/* "start-end rwxp offset device inode   name" */
static void add_mapping(const char *line) {
  struct saved *saved = ffuzz_saved;
  if (saved->mapping_count == MOST_MAPPINGS) ffuzz_give_up(FFUZZ_WHY_MEMORY, 0);
  struct mapping *m = &saved->mappings[saved->mapping_count];
  m->start = hexadecimal(&line);
  if (m->start >> 63) return; /* the kernel's page for system calls of old */
  saved->mapping_count++;
  line++;
  m->end = hexadecimal(&line);
  line++;
  int is_readable = line[0] == 'r', is_writable = line[1] == 'w', is_private = line[3] == 'p', runs = line[2] == 'x';
  skip_word(&line);
  skip_word(&line);
  skip_word(&line);
  m->is_file = line[0] != '0';
  while (*line >= '0' && *line <= '9') line++;
  while (*line == ' ') line++;
  m->is_stack = (uint8_t)begins_with(line, "[stack]");
  int has_breakpoints = ffuzz_breakpoints && ffuzz_breakpoints->is_code(m->start, m->end);
  m->is_put_back = (uint8_t)(is_writable && is_private && !has_breakpoints);
  m->rights = (uint8_t)((is_readable ? PROT_READ : 0) | (is_writable ? PROT_WRITE : 0) | (runs ? PROT_EXEC : 0));
  m->is_reserved = (uint8_t)(!is_readable && !is_writable && !runs && is_private && !m->is_file);
  if (is_writable && !is_private) refuse_foreign_shared(m, line);
}

/* One line after the other; a read ends where it likes. */
HIDDEN void ffuzz_mappings_list(void) {
  char *text = ffuzz_changes->text;
  uint64_t have = 0;
  long file = CALL(openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC), bytes;
  if (file < 0) ffuzz_give_up(FFUZZ_WHY_MEMORY, -file);
  while ((bytes = CALL(read, file, text + have, sizeof ffuzz_changes->text - have)) > 0) {
    have += (uint64_t)bytes;
    uint64_t line = 0;
    for (uint64_t at = 0; at < have; at++) {
      if (text[at] != '\n') continue;
      text[at] = 0;
      add_mapping(text + line);
      line = at + 1;
    }
    have -= line;
    for (uint64_t at = 0; at < have; at++) text[at] = text[line + at];
  }
  CALL(close, file);
}
#endif
