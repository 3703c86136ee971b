/* What the parts of a snapshot share: what was saved, and what the present run has changed.
 *
 * From the lowest part to the highest: mappings.c and pages.c have the memory. made.c knows what the prologue has
 * made, server.c what a server may do in it. changes.c undoes what a run changes in the kernel, which filter.c and calls.c notice. cycle.c has the order
 * of operations between two runs, take.c that of the snapshot itself; prologue.c finds where runs begin, and
 * snapshot.c starts all that.
 *
 * Rules for all of them. The code runs while the program's memory is in any state, and it must leave
 * nothing behind that the program could see. So: system calls by ffuzz_kernel only; no libc, no errno, no
 * thread-local or static variables that change; the stack is our own. All state is in the two structures
 * below. What was saved cannot be written any more once a run has begun, so a program that writes where
 * it likes gets a signal and not a wrong snapshot. */
#ifndef FFUZZ_SNAPSHOT_STATE_H
#define FFUZZ_SNAPSHOT_STATE_H

#include <signal.h>

#include "base.h"
#include "domains.h"
#include "machine.h"
#include "novelty.h"

#if FFUZZ_HAS_SNAPSHOTS

#define CALL(NAME, ...) CALL_(SYS_##NAME, ##__VA_ARGS__, 0, 0, 0, 0, 0, 0)
#define CALL_(N, A, B, C, D, E, F, ...) \
  ffuzz_kernel(N, (long)(A), (long)(B), (long)(C), (long)(D), (long)(E), (long)(F))

#define MOST_MAPPINGS 8192u
#define MOST_NEW 256u
#define MOST_DESCRIPTORS 64u
#define MOST_REGIONS 512u
#define MOST_WINDOWS 256u
#define MOST_OPENED 32u
#define MOST_MAPPED 256u
#define SIGNALS 65
#define STACK_BYTES 65536u

/* Descriptors of our own: below AFL's, above a program's. */
enum own_descriptor { OWN_FIRST = 180, OWN_FAULTS = OWN_FIRST, OWN_PAGES, OWN_INPUT, OWN_FOLDER, OWN_SAVED, OWN_LAST = 196 };

/* The kernel's, which libc would translate: arch/x86/include/uapi/asm/signal.h, asm-generic/signal.h. */
struct kernel_action {
  uint64_t handler, flags, restorer, mask;
};

struct range {
  uint64_t start, end;
};

/* Memory of our own; an inaccessible page lies on either side of it. */
struct own {
  uint64_t start, end;
  int is_sealed; /* when the first run begins */
};

/* AddressSanitizer's: a byte at (address >> scale) + offset; scale 0 if there is none. */
struct shadow {
  uint64_t scale, offset;
};

/* What tells a file from all others, and its kind. */
struct file_id {
  uint64_t inode;
  uint32_t major, minor, mode;
};

/* A descriptor that was opened since the process began, by the prologue or before main. */
struct opened {
  int number;
  uint32_t calls; /* of the prologue before it */
  int is_file;    /* that is only read: its offset can be put back */
  uint64_t offset;
};

/* Memory that the prologue has mapped. */
struct mapped {
  uint64_t start, end;
  uint32_t calls; /* of the prologue before it */
};

/* A line of /proc/self/maps. */
struct mapping {
  uint64_t start, end;
  uint64_t first;    /* number of its first page, if it is put back */
  uint8_t is_put_back; /* private and writable */
  uint8_t is_file;
  uint8_t is_stack;
  uint8_t is_reserved; /* no access, nothing behind it */
  uint8_t rights;      /* PROT_READ, PROT_WRITE, PROT_EXEC */
};

/* Complete when the first run begins, and read-only from then on. */
struct saved {
  struct context start;
  uint64_t signal_mask, heap_end;
  struct range span; /* from the first to the last mapping */
  struct range windows[MOST_WINDOWS]; /* where there is something to put back, by address */
  uint32_t window_count;
  struct shadow shadow;
  uint32_t mapping_count;
  uint32_t descriptor_count;
  struct mapping mappings[MOST_MAPPINGS]; /* by address */
  int descriptors[MOST_DESCRIPTORS];      /* open before the run, ascending */
  uint64_t close_on_exec;                 /* a bit for each of these */
  struct kernel_action actions[SIGNALS];  /* of the signals in one_shot */
  uint64_t one_shot;                      /* their handlers go when they are called (SA_RESETHAND) */
  struct own own[8];
  uint32_t own_count;
  uint32_t *copy_of;  /* per page: number of its copy, 0 if it was empty or as in its file */
  uint8_t *copies;    /* FFUZZ_PAGE bytes each; number 0 is not used */
  uint8_t *dirty_runs; /* per page: how many of the first runs wrote to it; is not sealed */
  struct saved_block *edges;
  struct saved_key *keys;
  uint32_t edge_count, key_count;
  void *log; /* NULL: it logs nothing */
  uint32_t prologue; /* system calls that stand before the snapshot */
  int is_starting;   /* the snapshot is still to be taken */
  int is_open;       /* OWN_FAULTS and OWN_PAGES are there */
  int has_prefix;    /* the stand-in for the network has the messages that all inputs begin with */
  struct file_id input;
  uint32_t opened_count;
  struct opened opened[MOST_OPENED];
  uint32_t mapped_count;
  struct mapped mapped[MOST_MAPPED];
};

/* A part of the answer to PAGEMAP_SCAN (struct page_region). */
struct region {
  uint64_t start, end, categories;
};

/* Bits of changes.what. */
enum {
  CHANGED_HEAP_END = 1,
  CHANGED_SIGNALS = 2,
  CHANGED_FOLDER = 4,
  CHANGED_UMASK = 8,
  CHANGED_TIMERS = 16,
  CHANGED_STACK = 32,
  CHANGED_DESCRIPTORS = 64,
  CHANGED_INPUT = 128,
  CHANGED_LOCKS = 256,
};

/* Of the present run. */
struct changes {
  uint32_t is_running;
  uint32_t has_all; /* all breakpoints are set, so that the map of this run is whole */
  uint32_t what;
  int status;
  uint32_t runs;
  uint32_t new_count;
  struct new_mapping {
    uint64_t start, end;
    uint64_t was_reserved;
  } new_mappings[MOST_NEW];
  struct other_rights {
    uint64_t start, end;
    int is_gone; /* for the run it is unmapped */
  } other_rights[MOST_NEW]; /* parts of mappings from before the run */
  uint32_t other_rights_count;
  struct range shadows[MOST_NEW]; /* of new mappings, also of those that are gone again */
  uint32_t shadow_count;          /* more than MOST_NEW: they are not all there */
  struct kernel_action actions[SIGNALS]; /* as they were, of signals in action_changed */
  uint64_t action_changed;
  stack_t stack;
  uint32_t umask;
  int saved_as[MOST_DESCRIPTORS]; /* where a descriptor that was closed or replaced is kept; 0: it was not */
  int next_saved;
  uint64_t counted; /* pages with a copy, while they are counted */
  struct region regions[MOST_REGIONS];
  char text[65536];
  _Alignas(64) uint8_t control_stack[STACK_BYTES];
};

/* A system call that was trapped. */
struct call {
  long number, a[6];
  ucontext_t *at;
};

HIDDEN extern struct saved *ffuzz_saved;
HIDDEN extern struct changes *ffuzz_changes;

/* Ends the child: this run has to be done by another, or (`why` above FFUZZ_WHY_RUN) all. */
HIDDEN void ffuzz_give_up(enum ffuzz_why why, long detail) __attribute__((noreturn));

static inline struct call trapped_call(const siginfo_t *info, ucontext_t *at) {
  struct call c = {.number = info->si_syscall, .at = at};
  for (int i = 0; i < 6; i++) c.a[i] = trapped_argument(at, i);
  return c;
}

static inline long perform(const struct call *c) {
  return ffuzz_kernel(c->number, c->a[0], c->a[1], c->a[2], c->a[3], c->a[4], c->a[5]);
}

static inline uint64_t shadow_of(uint64_t address) {
  return ((address >> ffuzz_saved->shadow.scale) + ffuzz_saved->shadow.offset) & ~(uint64_t)(FFUZZ_PAGE - 1);
}

static inline uint64_t round_up(uint64_t bytes) { return ffuzz_page_up(bytes); }

#endif
#endif
