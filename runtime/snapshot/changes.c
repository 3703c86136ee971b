/* What a run changes in the kernel: noted while it runs, undone behind it. The rules are in state.h. */
#define _GNU_SOURCE
#include "snapshot/changes.h"

#if FFUZZ_HAS_SNAPSHOTS
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "runs.h"
#include "snapshot/made.h"
#include "snapshot/mappings.h"

/* struct linux_dirent64 (getdents64(2)) */
struct entry {
  uint64_t inode, offset;
  uint16_t length;
  uint8_t type;
  char name[];
};

/* -1 if it is no number. */
static long decimal(const char *text) {
  long number = 0;
  if (!*text) return -1;
  for (; *text; text++) {
    if (*text < '0' || *text > '9' || number > 1 << 20) return -1;
    number = number * 10 + (*text - '0');
  }
  return number;
}

/* Calls `visit` for each entry of a folder in /proc whose name is a number. */
static void for_numbers(const char *folder, void (*visit)(long)) {
  long open = CALL(openat, AT_FDCWD, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), bytes;
  if (open < 0) ffuzz_give_up(FFUZZ_WHY_DESCRIPTORS, -open);
  while ((bytes = CALL(getdents64, open, ffuzz_changes->text, sizeof ffuzz_changes->text)) > 0)
    for (long at = 0; at < bytes;) {
      const struct entry *entry = (void *)(ffuzz_changes->text + at);
      long number = decimal(entry->name);
      if (number >= 0 && number != open) visit(number);
      at += entry->length;
    }
  CALL(close, open);
}

/* They come in ascending order; whoever changes that is refused. */
static void add_descriptor(long number) {
  struct saved *saved = ffuzz_saved;
  uint32_t count = saved->descriptor_count;
  int is_bad = count == MOST_DESCRIPTORS || (count && saved->descriptors[count - 1] >= number);
  if (number >= OWN_FIRST && number <= OWN_LAST) return;
  if (is_bad) ffuzz_give_up(FFUZZ_WHY_DESCRIPTORS, number);
  if (CALL(fcntl, number, F_GETFD) & FD_CLOEXEC) saved->close_on_exec |= (uint64_t)1 << count;
  saved->descriptors[saved->descriptor_count++] = (int)number;
}

static void count_thread(long number) {
  if (number != CALL(gettid)) ffuzz_give_up(FFUZZ_WHY_THREADS, 0);
}

static void refuse_timers(void) {
  for (int which = ITIMER_REAL; which <= ITIMER_PROF; which++) {
    struct itimerval value;
    CALL(getitimer, which, &value);
    if (value.it_value.tv_sec || value.it_value.tv_usec) ffuzz_give_up(FFUZZ_WHY_TIMER, which);
  }
}

/* Ends in a failure that is told if descriptors of these numbers are beyond the limit. */
static void claim_descriptors(void) {
  long last = CALL(fcntl, ffuzz_saved->descriptors[0], F_DUPFD_CLOEXEC, OWN_LAST);
  if (last < 0 && ffuzz_saved->descriptor_count) ffuzz_give_up(FFUZZ_WHY_DESCRIPTORS, -last);
  if (last >= 0) CALL(close, last);
  if (ffuzz_input->kind != FFUZZ_INPUT_STDIN) return;
  long error = CALL(dup3, 0, OWN_INPUT, O_CLOEXEC);
  if (error < 0) ffuzz_give_up(FFUZZ_WHY_INPUT, -error);
}

/* The kernel resets such a handler when it calls it, and nobody is told. */
static void save_one_shot(void) {
  struct saved *saved = ffuzz_saved;
  for (int i = 1; i < SIGNALS; i++) {
    CALL(rt_sigaction, i, NULL, &saved->actions[i], sizeof(uint64_t));
    if (saved->actions[i].flags & (uint32_t)SA_RESETHAND) saved->one_shot |= (uint64_t)1 << (i - 1);
  }
}

HIDDEN void ffuzz_changes_start(void) {
  for_numbers("/proc/self/task", count_thread);
  for_numbers("/proc/self/fd", add_descriptor);
  refuse_timers();
  claim_descriptors();
  save_one_shot();
  ffuzz_prologue_ends();
}

/* Descriptors. */

/* One that was there before the run is about to be closed or replaced. */
HIDDEN void ffuzz_note_descriptor(long number) {
  const struct saved *saved = ffuzz_saved;
  struct changes *changes = ffuzz_changes;
  for (uint32_t i = 0; i < saved->descriptor_count; i++) {
    if (saved->descriptors[i] != number || changes->saved_as[i]) continue;
    long copy = CALL(fcntl, number, F_DUPFD_CLOEXEC, OWN_SAVED);
    if (copy < 0 || copy > OWN_LAST) ffuzz_give_up(FFUZZ_WHY_MANY, number);
    changes->saved_as[i] = (int)copy;
    changes->what |= CHANGED_DESCRIPTORS;
  }
}

static void close_between(long first, long last) {
  if (first <= last) CALL(close_range, first, last, 0);
}

/* All but those that were there, and ours. */
static void close_new_descriptors(void) {
  const struct saved *saved = ffuzz_saved;
  long next = 0;
  for (uint32_t i = 0; i < saved->descriptor_count; i++) {
    long known = saved->descriptors[i];
    if (next < OWN_FIRST && known > OWN_LAST) {
      close_between(next, OWN_FIRST - 1);
      next = OWN_LAST + 1;
    }
    close_between(next, known - 1);
    next = known + 1;
  }
  if (next < OWN_FIRST) {
    close_between(next, OWN_FIRST - 1);
    next = OWN_LAST + 1;
  }
  CALL(close_range, next, ~0u, 0);
}

static void put_descriptors_back(void) {
  struct changes *changes = ffuzz_changes;
  for (uint32_t i = 0; i < ffuzz_saved->descriptor_count; i++) {
    if (!changes->saved_as[i]) continue;
    int flags = ffuzz_saved->close_on_exec >> i & 1 ? O_CLOEXEC : 0;
    CALL(dup3, changes->saved_as[i], ffuzz_saved->descriptors[i], flags);
    CALL(close, changes->saved_as[i]);
    changes->saved_as[i] = 0;
  }
}

/* Of files that the prologue has left open: by fork each run opens them anew. */
static void put_offsets_back(void) {
  for (uint32_t i = 0; i < ffuzz_saved->opened_count; i++)
    CALL(lseek, ffuzz_saved->opened[i].number, ffuzz_saved->opened[i].offset, SEEK_SET);
}

/* Signals. */

HIDDEN void ffuzz_note_signal(long number) {
  struct changes *changes = ffuzz_changes;
  uint64_t bit = (uint64_t)1 << (number - 1);
  if (changes->action_changed & bit) return;
  CALL(rt_sigaction, number, NULL, &changes->actions[number], sizeof(uint64_t));
  changes->action_changed |= bit;
  changes->what |= CHANGED_SIGNALS;
}

static void put_one_shot_back(void) {
  for (uint64_t rest = ffuzz_saved->one_shot; rest; rest &= rest - 1) {
    int number = __builtin_ctzll(rest) + 1;
    CALL(rt_sigaction, number, &ffuzz_saved->actions[number], NULL, sizeof(uint64_t));
  }
}

static void put_signals_back(void) {
  struct changes *changes = ffuzz_changes;
  for (int i = 1; i < SIGNALS; i++)
    if (changes->action_changed >> (i - 1) & 1)
      CALL(rt_sigaction, i, &changes->actions[i], NULL, sizeof(uint64_t));
  changes->action_changed = 0;
}

static void stop_timers(void) {
  struct itimerval none = {{0, 0}, {0, 0}};
  for (int which = ITIMER_REAL; which <= ITIMER_PROF; which++) CALL(setitimer, which, &none, NULL);
}

/* Mappings. */

static void note_shadow(uint64_t start, uint64_t end) {
  struct changes *changes = ffuzz_changes;
  if (!ffuzz_saved->shadow.scale || changes->shadow_count > MOST_NEW) return;
  if (changes->shadow_count < MOST_NEW)
    changes->shadows[changes->shadow_count] = (struct range){shadow_of(start), shadow_of(end) + FFUZZ_PAGE};
  changes->shadow_count++;
}

HIDDEN void ffuzz_note_mapping(uint64_t start, uint64_t length, int was_reserved) {
  struct changes *changes = ffuzz_changes;
  if (changes->new_count == MOST_NEW) ffuzz_give_up(FFUZZ_WHY_MANY, 0);
  changes->new_mappings[changes->new_count++] =
      (struct new_mapping){start, start + round_up(length), (uint64_t)was_reserved};
  note_shadow(start, start + round_up(length));
}

/* The run has unmapped or replaced it: what is left on either side stays in the list. */
HIDDEN void ffuzz_forget_mapping(uint64_t start, uint64_t length) {
  struct changes *changes = ffuzz_changes;
  uint64_t end = start + round_up(length);
  for (uint32_t i = changes->new_count; i-- > 0;) {
    struct new_mapping m = changes->new_mappings[i];
    /* What was reserved is reserved again behind the run, whatever happened to it meanwhile. */
    if (m.was_reserved || start >= m.end || end <= m.start) continue;
    changes->new_mappings[i] = changes->new_mappings[--changes->new_count];
    if (m.start < start) ffuzz_note_mapping(m.start, start - m.start, 0);
    if (m.end > end) ffuzz_note_mapping(end, m.end - end, 0);
  }
}

static void remove_mappings(void) {
  struct changes *changes = ffuzz_changes;
  while (changes->new_count) {
    struct new_mapping m = changes->new_mappings[--changes->new_count];
    const struct mapping *known = ffuzz_mapping_behind(m.start);
    int is_wrong = !m.was_reserved && known && known->start < m.end;
    if (is_wrong || ffuzz_is_own(m.start, m.end)) ffuzz_give_up(FFUZZ_WHY_MAPPING, 0);
    long error = m.was_reserved
                     ? CALL(mmap, m.start, m.end - m.start, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0)
                     : CALL(munmap, m.start, m.end - m.start);
    if (error < 0 && error > -4096) ffuzz_give_up(FFUZZ_WHY_MAPPING, -error);
  }
}

HIDDEN void ffuzz_note_rights(uint64_t start, uint64_t end, int is_gone) {
  struct changes *changes = ffuzz_changes;
  for (uint32_t i = 0; i < changes->other_rights_count; i++) {
    const struct other_rights *r = &changes->other_rights[i];
    if (r->start <= start && r->end >= end && r->is_gone >= is_gone) return;
  }
  if (changes->other_rights_count == MOST_NEW) ffuzz_give_up(FFUZZ_WHY_MANY, 0);
  changes->other_rights[changes->other_rights_count++] = (struct other_rights){start, end, is_gone};
}

static void put_rights_back(void) {
  struct changes *changes = ffuzz_changes;
  while (changes->other_rights_count) {
    struct other_rights r = changes->other_rights[--changes->other_rights_count];
    const struct mapping *m = ffuzz_mapping_behind(r.start);
    for (; m && m->start < r.end; m = ffuzz_mapping_behind(m->end)) {
      uint64_t start = m->start > r.start ? m->start : r.start, end = m->end < r.end ? m->end : r.end;
      long error = CALL(mprotect, start, end - start, m->rights);
      if (error) ffuzz_give_up(FFUZZ_WHY_MAPPING, -error);
    }
  }
}

HIDDEN void ffuzz_changes_undo(void) {
  struct changes *changes = ffuzz_changes;
  uint32_t what = changes->what;
  remove_mappings();
  put_rights_back();
  if (what & CHANGED_HEAP_END && (uint64_t)CALL(brk, ffuzz_saved->heap_end) != ffuzz_saved->heap_end)
    ffuzz_give_up(FFUZZ_WHY_MAPPING, 0);
  if (what & CHANGED_DESCRIPTORS) put_descriptors_back();
  put_offsets_back();
  if (what & CHANGED_FOLDER) {
    CALL(fchdir, OWN_FOLDER);
    CALL(close, OWN_FOLDER);
  }
  close_new_descriptors();
  if (what & CHANGED_SIGNALS) put_signals_back();
  put_one_shot_back();
  if (what & CHANGED_TIMERS) stop_timers();
  if (what & CHANGED_STACK) CALL(sigaltstack, &changes->stack, NULL);
  if (what & CHANGED_UMASK) CALL(umask, changes->umask);
  if (what & CHANGED_LOCKS) CALL(munlockall);
}
#endif
