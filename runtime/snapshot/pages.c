/* Memory of a snapshot: what is copied, how the kernel tells which pages a run has written to, and how they
 * are put back.
 *
 * A page is armed (write-protected by userfaultfd, without a handler: the kernel only notes the write) or
 * it is not; a scan reports all that are not. So a page that was missed cannot be: armed ones were not
 * written to, all others are put back. Pages that nearly every run writes to are never armed again,
 * because the fault costs more than the copy.
 *
 * The interfaces: Documentation/admin-guide/mm/userfaultfd.rst and pagemap.rst of the kernel (6.7). */
#define _GNU_SOURCE
#include "snapshot/pages.h"

#if FFUZZ_HAS_SNAPSHOTS
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <linux/userfaultfd.h>

#include "runs.h"
#include "snapshot/mappings.h"

/* What older headers lack (include/uapi/linux/userfaultfd.h, fs.h). */
#define FAULTS_USER_MODE_ONLY 1
#define FAULTS_UNPOPULATED ((uint64_t)1 << 13)
#define FAULTS_ASYNC ((uint64_t)1 << 15)
#define SCAN_PAGES _IOWR('f', 16, struct scan)
#define PAGE_WPALLOWED 1u
#define PAGE_WRITTEN 2u
#define PAGE_PRESENT 8u
#define PAGE_SWAPPED 16u
#define PAGE_ZERO 32u
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

/* Runs that tell which pages are written to nearly always, and how many of them have to. */
#define FIRST_RUNS 64u
#define OFTEN (FIRST_RUNS / 4)
/* A longer stretch of new pages is given back to the kernel: zeroing would make it stay for ever. */
#define MOST_ZEROED 64u

/* A sanitizer's shadow is one mapping and nearly empty: to walk over more than this costs more than another
 * scan. Between mappings there is nothing to walk over. */
#define NEAR ((uint64_t)64 << 20)
/* Now and then all is scanned, should a sanitizer's shadow have been written where no memory was. */
#define WHOLE_SCAN_EVERY 256u

/* struct pm_scan_arg */
struct scan {
  uint64_t size, flags, start, end, walk_end, vector, vector_length, most_pages;
  uint64_t inverted, mask, any_of, returned;
};

static void move(long from, int to) {
  long error = CALL(dup3, from, to, O_CLOEXEC);
  if (error < 0) ffuzz_give_up(FFUZZ_WHY_DESCRIPTORS, -error);
  CALL(close, from);
}

HIDDEN void ffuzz_memory_open(void) {
  if (ffuzz_saved->is_open) return;
  ffuzz_saved->is_open = 1;
  for (int number = OWN_FIRST; number <= OWN_LAST; number++)
    if (CALL(fcntl, number, F_GETFD) >= 0) ffuzz_give_up(FFUZZ_WHY_DESCRIPTORS, number);
  long faults = CALL(userfaultfd, O_CLOEXEC | O_NONBLOCK | FAULTS_USER_MODE_ONLY);
  if (faults < 0) ffuzz_give_up(FFUZZ_WHY_USERFAULT, -faults);
  struct uffdio_api api = {.api = UFFD_API, .features = FAULTS_ASYNC | FAULTS_UNPOPULATED};
  long error = CALL(ioctl, faults, UFFDIO_API, &api);
  if (error) ffuzz_give_up(FFUZZ_WHY_USERFAULT, -error);
  move(faults, OWN_FAULTS);
  long pages = CALL(openat, AT_FDCWD, "/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  if (pages < 0) ffuzz_give_up(FFUZZ_WHY_SCAN, -pages);
  move(pages, OWN_PAGES);
}

/* The next regions from `*at` on, and moves it behind them. */
static uint32_t scan(uint64_t *at, uint64_t end, uint64_t mask, uint64_t any_of) {
  struct scan s = {
      .size = sizeof s,
      .start = *at,
      .end = end,
      .vector = (uint64_t)ffuzz_changes->regions,
      .vector_length = MOST_REGIONS,
      .mask = mask,
      .any_of = any_of,
      .returned = PAGE_PRESENT | PAGE_SWAPPED | PAGE_ZERO,
  };
  long count = CALL(ioctl, OWN_PAGES, SCAN_PAGES, &s);
  if (count < 0) ffuzz_give_up(FFUZZ_WHY_SCAN, -count);
  *at = s.walk_end;
  return (uint32_t)count;
}

/* Calls `visit` for what is there of each mapping that is put back. */
static void for_present(void (*visit)(const struct mapping *, const struct region *)) {
  for (uint32_t i = 0; i < ffuzz_saved->mapping_count; i++) {
    const struct mapping *m = &ffuzz_saved->mappings[i];
    uint64_t at = m->start;
    while (m->is_put_back && at < m->end) {
      uint32_t count = scan(&at, m->end, 0, PAGE_PRESENT | PAGE_SWAPPED);
      for (uint32_t r = 0; r < count; r++) visit(m, &ffuzz_changes->regions[r]);
    }
  }
}

static uint64_t page_of(const struct mapping *m, uint64_t address) {
  return m->first + (address - m->start) / FFUZZ_PAGE;
}

static void count_pages(const struct mapping *m, const struct region *r) {
  (void)m;
  if (!(r->categories & PAGE_ZERO)) ffuzz_changes->counted += (r->end - r->start) / FFUZZ_PAGE;
}

static void copy_pages(const struct mapping *m, const struct region *r) {
  struct saved *saved = ffuzz_saved;
  if (r->categories & PAGE_ZERO) return;
  for (uint64_t at = r->start; at < r->end; at += FFUZZ_PAGE) {
    uint64_t number = ++ffuzz_changes->counted;
    saved->copy_of[page_of(m, at)] = (uint32_t)number;
    copy_bytes(saved->copies + number * FFUZZ_PAGE, (void *)at, FFUZZ_PAGE);
  }
}

static void arm(uint64_t start, uint64_t end) {
  struct uffdio_writeprotect w = {{start, end - start}, UFFDIO_WRITEPROTECT_MODE_WP};
  long error = CALL(ioctl, OWN_FAULTS, UFFDIO_WRITEPROTECT, &w);
  if (error) ffuzz_give_up(FFUZZ_WHY_USERFAULT, -error);
}

/* What is not there has no page table to arm, costs nothing in a scan, and is reported once it is there. */
static void arm_region(const struct mapping *m, const struct region *r) {
  (void)m;
  arm(r->start, r->end);
}

/* A page of a file that is read for the first time would have no copy. */
static void watch(const struct mapping *m) {
  if (m->is_file) CALL(madvise, m->start, m->end - m->start, MADV_POPULATE_READ);
  struct uffdio_register r = {.range = {m->start, m->end - m->start}, .mode = UFFDIO_REGISTER_MODE_WP};
  long error = CALL(ioctl, OWN_FAULTS, UFFDIO_REGISTER, &r);
  if (error) ffuzz_give_up(FFUZZ_WHY_USERFAULT, -error);
}

static void number_pages(void) {
  struct saved *saved = ffuzz_saved;
  uint64_t pages = 0;
  for (uint32_t i = 0; i < saved->mapping_count; i++) {
    struct mapping *m = &saved->mappings[i];
    if (!m->is_put_back) continue;
    m->first = pages;
    pages += (m->end - m->start) / FFUZZ_PAGE;
    watch(m);
  }
  saved->copy_of = ffuzz_own_memory(pages * sizeof *saved->copy_of);
  saved->dirty_runs = ffuzz_own_notes(pages);
}

/* Windows: what is scanned behind each run. */

static uint64_t shadow_end(void) { return shadow_of(~(uint64_t)0 >> 17) + FFUZZ_PAGE; }

static int is_shadow(const struct mapping *m) {
  const struct shadow *shadow = &ffuzz_saved->shadow;
  return shadow->scale && m->start >= shadow->offset && m->end <= shadow_end();
}

static int is_joined(uint64_t end, uint64_t start) {
  const struct shadow *shadow = &ffuzz_saved->shadow;
  if (start <= end + NEAR) return 1;
  return !shadow->scale || start <= shadow->offset || end >= shadow_end();
}

/* Joins what lies near each other; by address. */
static void add_window(uint64_t start, uint64_t end) {
  struct saved *saved = ffuzz_saved;
  uint32_t place = 0;
  while (place < saved->window_count && !is_joined(saved->windows[place].end, start)) place++;
  struct range *w = &saved->windows[place];
  if (place == saved->window_count || !is_joined(end, w->start)) {
    if (saved->window_count == MOST_WINDOWS) ffuzz_give_up(FFUZZ_WHY_MEMORY, MOST_WINDOWS);
    for (uint32_t i = saved->window_count++; i > place; i--) saved->windows[i] = saved->windows[i - 1];
    *w = (struct range){start, end};
    return;
  }
  if (start < w->start) w->start = start;
  if (end > w->end) w->end = end;
  while (place + 1 < saved->window_count && is_joined(w->end, saved->windows[place + 1].start)) {
    if (saved->windows[place + 1].end > w->end) w->end = saved->windows[place + 1].end;
    saved->window_count--;
    for (uint32_t i = place + 1; i < saved->window_count; i++) saved->windows[i] = saved->windows[i + 1];
  }
}

/* A stack grows downwards, as far as its limit, or to the next mapping. */
static uint64_t lowest(const struct mapping *m) {
  struct rlimit limit = {RLIM_INFINITY, 0};
  uint64_t below = m > ffuzz_saved->mappings ? m[-1].end : 0;
  if (!m->is_stack) return m->start;
  CALL(prlimit64, 0, RLIMIT_STACK, NULL, &limit);
  return limit.rlim_cur < m->start - below ? m->start - limit.rlim_cur : below;
}

/* Of a sanitizer's shadow, which is as large as an eighth of all addresses, what stands for memory that is
 * there. A run that maps more adds to it. */
static void add_windows(void) {
  struct saved *saved = ffuzz_saved;
  for (uint32_t i = 0; i < saved->mapping_count; i++) {
    const struct mapping *m = &saved->mappings[i];
    if (is_shadow(m)) continue;
    uint64_t start = lowest(m);
    if (m->is_put_back) add_window(start, m->end);
    if (saved->shadow.scale && !m->is_reserved) add_window(shadow_of(start), shadow_of(m->end) + FFUZZ_PAGE);
  }
  saved->span = (struct range){saved->mappings[0].start, saved->mappings[saved->mapping_count - 1].end};
}

/* The copies and their table are memory that nobody has written to yet, so they cost what is in use. */
HIDDEN void ffuzz_memory_save(void) {
  struct saved *saved = ffuzz_saved;
  ffuzz_mappings_list();
  saved->heap_end = (uint64_t)CALL(brk, 0);
  number_pages();
  add_windows();
  for_present(count_pages);
  saved->copies = ffuzz_own_memory((ffuzz_changes->counted + 1) * FFUZZ_PAGE);
  ffuzz_changes->counted = 0;
  for_present(copy_pages);
  for_present(arm_region);
}

/* The pages from `at` on that have no copy. */
static uint64_t end_of_new(const struct mapping *m, uint64_t at, uint64_t end) {
  while (at < end && !ffuzz_saved->copy_of[page_of(m, at)]) at += FFUZZ_PAGE;
  return at;
}

/* Pages that were not there: empty, or as in their file. Returns whether they are still there. */
static int empty_pages(const struct mapping *m, uint64_t start, uint64_t end, uint64_t categories) {
  if (categories & PAGE_ZERO) return 1; /* only read */
  if (m->is_file || end - start > MOST_ZEROED * FFUZZ_PAGE) {
    CALL(madvise, start, end - start, MADV_DONTNEED);
    return 0;
  }
  zero_bytes((void *)start, end - start);
  return 1;
}

static int is_written_often(uint64_t page) {
  uint8_t *runs = &ffuzz_saved->dirty_runs[page];
  if (ffuzz_changes->runs < FIRST_RUNS) ++*runs;
  return ffuzz_changes->runs >= FIRST_RUNS && *runs >= OFTEN;
}

/* Adjacent pages are armed by one call. */
static void arm_pages(const struct mapping *m, uint64_t start, uint64_t end) {
  uint64_t from = start;
  for (uint64_t at = start; at < end; at += FFUZZ_PAGE) {
    if (!is_written_often(page_of(m, at))) continue;
    if (from < at) arm(from, at);
    from = at + FFUZZ_PAGE;
  }
  if (from < end) arm(from, end);
}

static void put_pages_back(const struct mapping *m, uint64_t start, uint64_t end, uint64_t categories) {
  const struct saved *saved = ffuzz_saved;
  uint64_t from = start; /* of what is there and has to be armed */
  for (uint64_t at = start; at < end;) {
    uint32_t copy = saved->copy_of[page_of(m, at)];
    if (copy) {
      copy_bytes((void *)at, saved->copies + (uint64_t)copy * FFUZZ_PAGE, FFUZZ_PAGE);
      at += FFUZZ_PAGE;
      continue;
    }
    uint64_t next = end_of_new(m, at, end);
    if (!empty_pages(m, at, next, categories)) {
      arm_pages(m, from, at);
      from = next;
    }
    at = next;
  }
  arm_pages(m, from, end);
}

/* A region may reach over several mappings, and below the stack as it was. */
static void put_region_back(const struct region *r) {
  for (uint64_t at = r->start; at < r->end;) {
    const struct mapping *m = ffuzz_mapping_behind(at);
    uint64_t known = m && m->start < r->end ? m->start : r->end;
    if (at < known) {
      CALL(madvise, at, known - at, MADV_DONTNEED);
      at = known;
      continue;
    }
    uint64_t end = m->end < r->end ? m->end : r->end;
    if (m->is_put_back) {
      put_pages_back(m, at, end, r->categories);
      ffuzz_runs->pages += (uint32_t)((end - at) / FFUZZ_PAGE);
    }
    at = end;
  }
}

static void put_window_back(struct range window) {
  for (uint64_t at = window.start; at < window.end;) {
    uint32_t count = scan(&at, window.end, PAGE_WRITTEN | PAGE_WPALLOWED, PAGE_PRESENT | PAGE_SWAPPED);
    for (uint32_t r = 0; r < count; r++) put_region_back(&ffuzz_changes->regions[r]);
  }
}

HIDDEN void ffuzz_memory_put_back(void) {
  struct saved *saved = ffuzz_saved;
  struct changes *changes = ffuzz_changes;
  int is_whole = ++changes->runs % WHOLE_SCAN_EVERY == 0 || changes->shadow_count > MOST_NEW;
  if (is_whole) put_window_back(saved->span);
  for (uint32_t i = 0; i < saved->window_count && !is_whole; i++) put_window_back(saved->windows[i]);
  for (uint32_t i = 0; i < changes->shadow_count && !is_whole; i++) put_window_back(changes->shadows[i]);
  changes->shadow_count = 0;
}
#endif
