/* A heap that shows its misuse, for programs that no sanitizer was compiled into (ffuzz --guard-heap): a library for
 * LD_PRELOAD, which stands alone.
 *
 * A block ends at an inaccessible page, so reading or writing after it is a crash at the fault. A freed block is used
 * again as late as possible, and holds a pattern meanwhile that makes a pointer nobody can follow. The bytes beside a
 * block are checked when it is freed and when the program ends; so are freed blocks when they are used again, and at
 * the end.
 *
 * All pages are laid out when the first block is asked for, because a run by snapshot may not change how they are
 * protected. A process that no fork server has started runs alone: there a freed block is inaccessible, so reading it
 * is a crash as well, and a line names the kind of a fault at any of these pages. If no place is left, and for large alignments, libc's heap is used. Electric Fence (Perens, 1987) had the
 * idea. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE ((size_t)4096)
#define ALIGNMENT ((size_t)16)
/* Places for blocks of a page and of 16 pages. Larger ones have a mapping each. */
#define SMALL 2048u
#define MEDIUM 256u
#define MEDIUM_PAGES ((size_t)16)
#define MOST_LARGE 1024u
#define BORDER 0xfb
#define FREED 0xfd

enum state { UNUSED, IN_USE, FREE };

struct place {
  uint8_t *start, *end; /* of the pages; an inaccessible one follows */
  uint32_t bytes;       /* of its block, which ends with the pages */
  enum state state;
  int is_closed; /* its pages are inaccessible */
  uint32_t next; /* of the freed ones: what was freed after it */
};

/* Places of a size: those from `fresh` on were never used, the others wait in the order in which they were freed.
 * Number 0 is none. */
struct size {
  uint32_t fresh, limit, first, last;
};

struct large {
  uint8_t *block, *pages;
  size_t bytes, mapped;
};

static struct place places[1 + SMALL + MEDIUM];
static struct size sizes[] = {{1, 1 + SMALL, 0, 0}, {1 + SMALL, 1 + SMALL + MEDIUM, 0, 0}};
static struct large larges[MOST_LARGE];
static uint8_t *arena, *arena_end;
static int is_laid_out, is_alone, lock;

static int try_to_take(void) { return !__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE); }

static void take(void) {
  while (!try_to_take()) sched_yield();
}

static void release(void) { __atomic_store_n(&lock, 0, __ATOMIC_RELEASE); }

/* Triage reads this line (crashes/crash/beyond). */
static void say(const char *what) {
  const char *parts[] = {"==ffuzz== ERROR: ", what, "\n"};
  for (int i = 0; i < 3; i++)
    if (write(2, parts[i], strlen(parts[i])) < 0) break;
}

/* By its name it is known as no function of the program (crashes/crash/names.rs). */
__attribute__((noreturn, noinline)) static void ffuzz_heap_report(const char *what) {
  release();
  say(what);
  abort();
}

static void *no_memory(void) {
  errno = ENOMEM;
  return NULL;
}

static void watch_faults(void);

/* libc's functions, for what has no place here. dlsym() asks for memory itself, so they are found before places run
 * out. */
static void *(*real_calloc)(size_t, size_t);
static void *(*real_memalign)(size_t, size_t);
static void (*real_free)(void *);
static size_t (*real_size)(void *);

__attribute__((constructor(101))) static void find_real(void) {
  real_calloc = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, "calloc");
  real_memalign = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, "memalign");
  real_free = (void (*)(void *))dlsym(RTLD_NEXT, "free");
  real_size = (size_t (*)(void *))dlsym(RTLD_NEXT, "malloc_usable_size");
  is_alone = !getenv("__AFL_SHM_ID");
  if (is_alone) watch_faults();
}

static void lay_out(void) {
  size_t bytes = (SMALL * 2 + MEDIUM * (MEDIUM_PAGES + 1)) * PAGE;
  is_laid_out = 1;
  uint8_t *at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) {
    for (int i = 0; i < 2; i++) sizes[i].fresh = sizes[i].limit;
    return;
  }
  arena = at;
  arena_end = at + bytes;
  for (uint32_t i = 1; i < 1 + SMALL + MEDIUM; i++) {
    size_t inside = (i < 1 + SMALL ? 1 : MEDIUM_PAGES) * PAGE;
    mprotect(at, inside, PROT_READ | PROT_WRITE);
    places[i] = (struct place){.start = at, .end = at + inside};
    at += inside + PAGE;
  }
}

static size_t round_up(size_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

static uint8_t *block_of(const struct place *p) { return p->end - round_up(p->bytes); }

/* Bytes in front of a block that are watched. */
static size_t watched(const struct place *p) {
  size_t room = (size_t)(block_of(p) - p->start);
  return room < ALIGNMENT ? room : ALIGNMENT;
}

static int all_are(const uint8_t *at, size_t count, uint8_t value) {
  for (size_t i = 0; i < count; i++)
    if (at[i] != value) return 0;
  return 1;
}

static void mark_borders(const struct place *p) {
  uint8_t *block = block_of(p);
  memset(block - watched(p), BORDER, watched(p));
  memset(block + p->bytes, BORDER, round_up(p->bytes) - p->bytes);
}

static void check_borders(const struct place *p) {
  const uint8_t *block = block_of(p);
  if (!all_are(block + p->bytes, round_up(p->bytes) - p->bytes, BORDER))
    ffuzz_heap_report("heap-buffer-overflow: bytes after a block were written");
  if (!all_are(block - watched(p), watched(p), BORDER))
    ffuzz_heap_report("heap-buffer-underflow: bytes in front of a block were written");
}

/* A place for a block of that size; NULL if there is none. */
static struct place *find_place(size_t bytes) {
  struct size *s = &sizes[bytes > PAGE];
  if (bytes > MEDIUM_PAGES * PAGE) return NULL;
  if (!is_laid_out) lay_out();
  if (s->fresh < s->limit) return &places[s->fresh++];
  if (!s->first) return NULL;
  struct place *p = &places[s->first];
  s->first = p->next;
  if (p->is_closed) mprotect(p->start, (size_t)(p->end - p->start), PROT_READ | PROT_WRITE);
  p->is_closed = 0;
  if (!all_are(block_of(p), p->bytes, FREED)) ffuzz_heap_report("heap-use-after-free: a freed block was written");
  return p;
}

static void *allocate_small(size_t bytes, int is_zeroed) {
  take();
  struct place *p = find_place(bytes);
  if (!p) {
    release();
    return NULL;
  }
  int was_used = p->state == FREE;
  p->bytes = (uint32_t)bytes;
  p->state = IN_USE;
  mark_borders(p);
  uint8_t *block = block_of(p);
  release();
  if (is_zeroed && was_used) memset(block, 0, bytes);
  return block;
}

static void *allocate_large(size_t bytes) {
  size_t inside = (bytes + PAGE - 1) / PAGE * PAGE;
  uint8_t *pages = NULL, *block = NULL;
  take();
  for (uint32_t i = 0; i < MOST_LARGE && !block; i++) {
    if (larges[i].block) continue;
    pages = mmap(NULL, inside + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) break;
    mprotect(pages + inside, PAGE, PROT_NONE);
    block = pages + inside - round_up(bytes);
    larges[i] = (struct large){block, pages, bytes, inside + PAGE};
  }
  release();
  return block;
}

static void *allocate(size_t bytes, int is_zeroed) {
  if (bytes > PTRDIFF_MAX - 2 * PAGE) return no_memory();
  int is_large = bytes > MEDIUM_PAGES * PAGE;
  void *block = is_large ? allocate_large(bytes) : allocate_small(bytes, is_zeroed);
  if (block) return block;
  return real_calloc ? real_calloc(1, bytes) : no_memory();
}

static struct large *large_at(const void *block) {
  for (uint32_t i = 0; i < MOST_LARGE; i++)
    if (larges[i].block == block) return &larges[i];
  return NULL;
}

static int is_in_arena(const void *at) { return (const uint8_t *)at >= arena && (const uint8_t *)at < arena_end; }

/* Of a block in use. A block of no bytes begins behind its pages, which are still those of its place. */
static struct place *place_at(const void *block) {
  size_t offset = (size_t)((const uint8_t *)block - arena), small = SMALL * 2 * PAGE;
  size_t number = offset < small ? 1 + offset / (2 * PAGE) : 1 + SMALL + (offset - small) / ((MEDIUM_PAGES + 1) * PAGE);
  struct place *p = &places[number];
  if (p->state == UNUSED || block_of(p) != block) ffuzz_heap_report("bad-free: no block begins at the pointer that was freed");
  if (p->state == FREE) ffuzz_heap_report("double-free: a block was freed twice");
  return p;
}

static void free_place(struct place *p) {
  struct size *s = &sizes[p >= &places[1 + SMALL]];
  uint32_t number = (uint32_t)(p - places);
  check_borders(p);
  memset(block_of(p), FREED, p->bytes);
  p->state = FREE;
  p->next = 0;
  p->is_closed = is_alone && !mprotect(p->start, (size_t)(p->end - p->start), PROT_NONE);
  if (s->first)
    places[s->last].next = number;
  else
    s->first = number;
  s->last = number;
}

/* Checks what the program has not freed, and what was not used again. A thread that holds the lock never releases it now. */
__attribute__((destructor(101))) static void ffuzz_heap_check(void) {
  if (!try_to_take()) return;
  for (int i = 0; i < 2; i++)
    for (uint32_t at = i ? 1 + SMALL : 1; at < sizes[i].fresh && arena; at++) {
      const struct place *p = &places[at];
      if (p->state == IN_USE) check_borders(p);
      if (p->state == FREE && !p->is_closed && !all_are(block_of(p), p->bytes, FREED))
        ffuzz_heap_report("heap-use-after-free: a freed block was written");
    }
  release();
}

/* Names a fault at a page of the arena, which then happens again and ends the process as it would have. */
static void ffuzz_heap_fault(int number, siginfo_t *info, void *context) {
  const uint8_t *at = info->si_addr;
  (void)context;
  if (info->si_code > 0 && at >= arena && at < arena_end)
    for (uint32_t i = 1; i < 1 + SMALL + MEDIUM; i++) {
      const struct place *p = &places[i];
      if (at < p->start || at >= p->end + PAGE) continue;
      if (at < p->end && p->is_closed)
        say("heap-use-after-free: a freed block was used");
      else if (at >= p->end && p->state == FREE)
        say("heap-use-after-free: bytes after a freed block were used");
      else if (at >= p->end)
        say("heap-buffer-overflow: bytes after a block were used");
      break;
    }
  signal(number, SIG_DFL);
}

static void watch_faults(void) {
  struct sigaction action = {.sa_sigaction = ffuzz_heap_fault, .sa_flags = SA_SIGINFO};
  sigaction(SIGSEGV, &action, NULL);
}

void *malloc(size_t bytes) { return allocate(bytes, 0); }

void *calloc(size_t count, size_t size) {
  size_t bytes;
  return __builtin_mul_overflow(count, size, &bytes) ? no_memory() : allocate(bytes, 1);
}

void free(void *block) {
  if (!block) return;
  int error = errno;
  take();
  struct large *large = is_in_arena(block) ? NULL : large_at(block), old = {0};
  if (is_in_arena(block)) {
    free_place(place_at(block));
  } else if (large) {
    old = *large;
    *large = (struct large){0};
  }
  release();
  if (old.block)
    munmap(old.pages, old.mapped);
  else if (!is_in_arena(block))
    real_free(block);
  errno = error;
}

size_t malloc_usable_size(void *block) {
  if (!block) return 0;
  take();
  const struct large *large = is_in_arena(block) ? NULL : large_at(block);
  size_t bytes = is_in_arena(block) ? place_at(block)->bytes : large ? large->bytes : 0;
  release();
  if (large || is_in_arena(block)) return bytes;
  return real_size(block);
}

void *realloc(void *old, size_t bytes) {
  if (!old) return malloc(bytes);
  size_t before = malloc_usable_size(old);
  if (!bytes) {
    free(old);
    return NULL;
  }
  void *block = malloc(bytes);
  if (!block) return NULL;
  memcpy(block, old, before < bytes ? before : bytes);
  free(old);
  return block;
}

void *reallocarray(void *old, size_t count, size_t size) {
  size_t bytes;
  return __builtin_mul_overflow(count, size, &bytes) ? no_memory() : realloc(old, bytes);
}

void *memalign(size_t alignment, size_t bytes) {
  if (alignment <= ALIGNMENT) return malloc(bytes);
  if (!real_memalign) find_real();
  return real_memalign(alignment, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }

int posix_memalign(void **to, size_t alignment, size_t bytes) {
  if (alignment < sizeof(void *) || alignment & (alignment - 1)) return EINVAL;
  int error = errno;
  void *block = memalign(alignment, bytes);
  errno = error;
  if (!block) return ENOMEM;
  *to = block;
  return 0;
}

void *valloc(size_t bytes) { return memalign(PAGE, bytes); }

void *pvalloc(size_t bytes) { return memalign(PAGE, (bytes + PAGE - 1) / PAGE * PAGE); }
