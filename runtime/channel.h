/* The channel: what ffuzz and a target built by ffuzz-cc share, written down once.
 * src/exec/channel.rs mirrors it; a test compares sizes and offsets.
 *
 * The fuzzer creates a memfd of FFUZZ_CHANNEL_HEADER bytes (sealed against shrinking), leaves it
 * open in the target under a descriptor number of its choice, and names it in the environment:
 * FFUZZ_CHANNEL=<fd>. A runtime that knows the channel checks magic and version, grows the file to
 * what it needs, writes the layout and the two tables, sets `accepted`, and only then sends its
 * ordinary AFL hello. The fuzzer looks at the header when the hello arrives. A target that does
 * not know the channel never notices; a stock fuzzer never offers one.
 *
 * Who writes what: the fields say so. Nothing the target writes is trusted: the fuzzer checks every
 * offset against the size of the file, once, after the hello, and every index whenever it is used.
 *
 * There is no size to guess, no segment to leak and no limit on the number or size of domains. The runtime puts the
 * pages of the channel where counters and domain maps already are, so no address changes; inlined updates
 * (llvm-passes/ffuzz-update.hpp) depend on that. A target without the channel uses AFL's SysV segment (__AFL_SHM_ID),
 * with the FuzzFactory array after the first 65536 bytes if its hello was 1 to 4. */
#ifndef FFUZZ_CHANNEL_H
#define FFUZZ_CHANNEL_H

#include <stdint.h>

#define FFUZZ_CHANNEL_ENV "FFUZZ_CHANNEL"
#define FFUZZ_CHANNEL_MAGIC 0x5a5a4646u /* "FFZZ" in memory */
#define FFUZZ_CHANNEL_VERSION 3u
#define FFUZZ_CHANNEL_HEADER 8192u /* the tables and maps begin behind it */
#define FFUZZ_PAGE 4096u           /* every region begins on a page border */

/* Bits of ffuzz_channel.features; those of runs also of .offered. */
#define FFUZZ_FEATURE_COPIED_COUNTERS 1u /* some module's counters are copied after a run (gold) */
#define FFUZZ_FEATURE_RUNS 2u            /* runs are ordered through struct ffuzz_runs, not by pipes */
#define FFUZZ_FEATURE_SNAPSHOT 4u        /* a child without a loop can be put back after each run */
#define FFUZZ_FEATURE_PATHS 8u           /* a child that takes batches can hash the path of each run */
#define FFUZZ_FEATURE_LOG 16u            /* the program can log what it compares */
#define FFUZZ_FEATURE_MUTATOR 32u        /* a harness with LLVMFuzzerCustomMutator (driver/mutations.h) */
#define FFUZZ_FEATURE_CROSSOVER 64u      /* a harness with LLVMFuzzerCustomCrossOver */

#define FFUZZ_RUNS_OFFSET 1024u  /* of struct ffuzz_runs */
#define FFUZZ_PATHS_OFFSET 1280u /* of uint64_t[FFUZZ_MOST_CASES]: what was asked for by `paths` */
#define FFUZZ_CASES_OFFSET 3328u /* of struct ffuzz_case[FFUZZ_MOST_CASES] */
#define FFUZZ_INPUT_OFFSET 5376u /* of struct ffuzz_input, up to struct ffuzz_left */
#define FFUZZ_LEFT_OFFSET 7936u  /* of struct ffuzz_left, up to the end of the header */
#define FFUZZ_MOST_CASES 256u
#define FFUZZ_TICK 256u
/* Bytes for the test cases of one batch; the largest single one, 1 MiB, fits. */
#define FFUZZ_ARENA 0x200000u

struct ffuzz_channel {
  /* written by the fuzzer before the target starts */
  uint32_t magic;
  uint32_t version;
  /* written by the target before its hello */
  uint32_t accepted; /* the version it speaks; 0 until then */
  uint32_t features;
  uint64_t size;           /* bytes of the whole channel */
  uint64_t map_offset;     /* edge counters, one byte each; parts of modules are page-aligned */
  uint64_t map_size;       /* last counter in use + 1 */
  uint64_t modules_offset; /* struct ffuzz_module[module_count] */
  uint64_t domains_offset; /* struct ffuzz_domain[domain_count], in order of registration */
  uint64_t dsf_offset;     /* uint32_t[dsf_total] */
  uint64_t touched_offset; /* uint32_t[touched_capacity] */
  uint32_t module_count;
  uint32_t domain_count;
  uint32_t dsf_total; /* keys of all domains */
  uint32_t touched_capacity;
  /* state of a run: the target counts up, the fuzzer sets it to 0 between runs. A count above the
   * capacity means that the list is incomplete and the whole map has to be looked at. */
  uint32_t touched_count;
  uint32_t offered; /* written by the fuzzer before the target starts */
  /* Written by the fuzzer, read by a target that judges its runs by itself. */
  uint64_t arena_offset;  /* uint8_t[FFUZZ_ARENA] */
  uint64_t virgin_offset; /* uint8_t[map_size]: hit-count classes not yet seen, per edge */
  uint64_t bars_offset;   /* uint32_t[dsf_total]: what a key's value has to beat */
  /* Written by the target: why it cannot use the channel (errno, 0 if it can), and instrumented objects
   * that were loaded after the hello, whose counters nobody sees. */
  uint32_t refused;
  uint32_t late_count;
  char late_name[112]; /* of the first; cut, always ends with NUL */
  uint64_t log_offset; /* struct ffuzz_log */
  uint64_t absent; /* bytes of the map that stay 0: between modules, and counters that nothing counts up */
  uint64_t absent_alone; /* the same once breakpoints alone show blocks (no_detours) */
  uint32_t rejected; /* runs whose input the harness refused; they show nothing. The target counts up, wrapping */
};

/* Orders and reports of runs. Each side writes cache lines of its own. The fuzzer waits on `report`,
 * the fork server on `want`, its child, once it is in the persistent loop, on `go`.
 *
 * A batch: the fuzzer sets started, finished and report to 0, fills in the cases, counts `go` up; if
 * no child is alive it counts `want` up as well. The child runs the cases in order and stops, with its
 * maps left in place, at the first that shows something new, or behind the last. A child that ends
 * is reported by the fork server: the case that was under way is number `finished`.
 *
 * A child that is put back (`lasting`) takes batches in the same way, and the fork server does not wait
 * for it: other children, for one run each, may come and go beside it while it waits for a batch. It is
 * reported in words of its own. In doubt it ends, and says why; the case under way is then run by such
 * another child. */
struct ffuzz_runs {
  /* written by the fuzzer */
  uint32_t want;    /* number of the child that is wanted */
  uint32_t lasting; /* that child is put back after each run */
  uint32_t prologue; /* system calls of main that may stand before its snapshot, at most */
  uint32_t no_detours; /* children that start now have breakpoints alone (runtime/native/) */
  uint32_t prefix; /* bytes that all cases of a child that is put back begin with: whole messages, see FFUZZ_INPUT_NET */
  uint32_t pad_want[11];
  uint32_t go;    /* number of the batch */
  uint32_t count; /* its cases, at least 1 */
  uint32_t each;  /* stop behind every case */
  uint32_t watch; /* look at domains as well */
  uint32_t crash_codes[8]; /* a bit for each exit status that the fork server has to report */
  uint32_t paths; /* enum ffuzz_paths: hash the path of each case that is not to be judged */
  uint32_t log; /* children that start now log what they compare, and count no edges */
  uint32_t breakpoints; /* enum ffuzz_breakpoints_set: of children that start now and end with their run */
  uint32_t learned; /* counts changes of the virgin map */
  /* written by the child, set to 0 by the fuzzer */
  uint32_t report; /* 1: stopped (child), 2: ended (fork server) */
  uint32_t started;
  uint32_t finished;
  uint32_t shown; /* enum ffuzz_shown: the last finished case is to be judged */
  uint32_t began; /* the child's work on the batch, in ticks of FFUZZ_TICK ns of its clock, wrapping */
  uint32_t stopped; /* its end; both are noted by the fork server for a process without a loop */
  uint32_t why;     /* enum ffuzz_why: a child that is put back ended on purpose */
  uint32_t detail;  /* error or system call */
  uint32_t pages;   /* put back so far, wrapping */
  uint32_t prologue_calls; /* system calls that do stand before it */
  uint32_t pad_report[6];
  /* written by the fork server, process ids by the children */
  uint32_t child; /* process id */
  uint32_t ended; /* number of the last child that has ended */
  uint32_t status; /* its wait status */
  uint32_t lasting_child; /* the same of the last child that is put back */
  uint32_t lasting_ended;
  uint32_t lasting_status;
  uint32_t pad_ended[10];
};

enum ffuzz_shown {
  FFUZZ_SHOWN_NOT,
  FFUZZ_SHOWN_EACH, /* because the fuzzer wants to see each */
  FFUZZ_SHOWN_NEWS, /* because it shows something new */
};

/* Of a program without counters (runtime/native/). */
enum ffuzz_breakpoints_set {
  FFUZZ_BREAKPOINTS_ALL,
  FFUZZ_BREAKPOINTS_NONE,
  FFUZZ_BREAKPOINTS_UNSEEN, /* of blocks that the virgin map does not know as hit */
};

/* What counts as a path. */
enum ffuzz_paths {
  FFUZZ_PATHS_NOT,
  FFUZZ_PATHS_EDGES,  /* the edges that were hit */
  FFUZZ_PATHS_COUNTS, /* and the classes of their hit counts */
};

/* Why a child that is put back ends by itself. Up to FFUZZ_WHY_RUN: what this run did has to be done in a
 * process of its own. Above: no run of this program can be put back. */
enum ffuzz_why {
  FFUZZ_WHY_NOTHING,
  FFUZZ_WHY_PROCESS,     /* it started a process or a thread */
  FFUZZ_WHY_CALL,        /* it made a system call that cannot be undone */
  FFUZZ_WHY_MAPPING,     /* it changed memory mappings from before the run */
  FFUZZ_WHY_MANY,        /* it mapped or replaced more than can be noted */
  FFUZZ_WHY_SIGNAL,      /* it left a signal pending, or wants SIGSYS for itself */
  FFUZZ_WHY_INPUT,       /* its input cannot be put in place */
  FFUZZ_WHY_PROLOGUE,    /* its runs have to begin earlier, behind `detail` system calls of main */
  FFUZZ_WHY_RUN = 31,
  FFUZZ_WHY_USERFAULT,   /* userfaultfd is refused, or cannot write-protect asynchronously */
  FFUZZ_WHY_SCAN,        /* the kernel has no PAGEMAP_SCAN */
  FFUZZ_WHY_FILTER,      /* seccomp is refused */
  FFUZZ_WHY_THREADS,     /* there are threads before the first run */
  FFUZZ_WHY_SHARED,      /* the program has shared memory of its own */
  FFUZZ_WHY_DESCRIPTORS, /* descriptors that the snapshot needs are taken, or beyond the limit */
  FFUZZ_WHY_TIMER,       /* a timer runs before the first run */
  FFUZZ_WHY_MEMORY,      /* there is no memory for the copy, or there are too many mappings */
  FFUZZ_WHY_RSEQ,        /* the kernel writes into the program's memory by itself */
  FFUZZ_WHY_KEYS,        /* more domain keys were touched before the first run than are listed */
};

/* Where a child that is put back finds its input; written by the fuzzer before the target starts. */
enum ffuzz_input_kind {
  FFUZZ_INPUT_NONE,
  FFUZZ_INPUT_STDIN,
  FFUZZ_INPUT_FILE,
  FFUZZ_INPUT_NET, /* the stand-in for the network asks for it (runtime/net/); behind `prefix` bytes a message follows,
                    * and the number of its connection is the same in all cases of a child */
};

struct ffuzz_input {
  uint32_t kind;
  char path[FFUZZ_LEFT_OFFSET - FFUZZ_INPUT_OFFSET - 4]; /* absolute, ends with NUL */
};

/* What the last run of a child that is put back has left outside of its process, and no restoring removes: files that
 * it made, removed or opened for writing, folders, links, sockets. The child writes it. */
struct ffuzz_left {
  uint32_t count;
  char first[FFUZZ_CHANNEL_HEADER - FFUZZ_LEFT_OFFSET - 4]; /* as the program named it; cut, ends with NUL */
};

struct ffuzz_case {
  uint32_t offset; /* in the arena */
  uint32_t length;
};

/* Comparisons of a run. The fuzzer sets count, used and seen to 0 before it. */
#define FFUZZ_MOST_COMPARISONS 65536u
#define FFUZZ_LOG_SLOTS 16384u
#define FFUZZ_LOG_ARENA 0x100000u
/* Of one side of a comparison of memory or text. */
#define FFUZZ_LONGEST_OPERAND 64u
/* Of a switch. */
#define FFUZZ_MOST_LOGGED_CASES 256u

enum ffuzz_comparison_kind {
  FFUZZ_LOG_EQUAL,    /* two integers, == or != */
  FFUZZ_LOG_UNSIGNED, /* their order */
  FFUZZ_LOG_SIGNED,
  FFUZZ_LOG_FLOAT,  /* float (4 bytes) or double */
  FFUZZ_LOG_SWITCH, /* b: the cases, 8 bytes each */
  FFUZZ_LOG_MEMORY, /* blocks of one length; memmem: b is what is looked for in a */
  FFUZZ_LOG_TEXT,   /* texts, without the NUL at their end */
  FFUZZ_LOG_SEARCH, /* b is looked for in a */
};

/* Of the kinds from FFUZZ_LOG_SWITCH on, and of integers of more than 8 bytes, a side is a place in the arena: offset,
 * and length in the upper half. Of a switch a is a value. */
struct ffuzz_comparison {
  uint32_t site;
  uint32_t how; /* bytes of an operand, kind << 8, flags << 16 */
  uint64_t a, b;
};

/* Bits of the flags. */
#define FFUZZ_LOG_CONSTANT_A 1u
#define FFUZZ_LOG_CONSTANT_B 2u
#define FFUZZ_LOG_IGNORES_CASE 4u
#define FFUZZ_LOG_MAYBE 8u /* the call may be of something else than a comparer */

struct ffuzz_log {
  uint32_t count; /* above FFUZZ_MOST_COMPARISONS the rest is missing */
  uint32_t used;  /* bytes of the arena; beyond its end operands are missing */
  uint32_t pad[14];
  uint32_t seen[FFUZZ_LOG_SLOTS]; /* how often a site compared, by a hash of its number */
  struct ffuzz_comparison entries[FFUZZ_MOST_COMPARISONS];
  uint8_t arena[FFUZZ_LOG_ARENA];
};

/* One object with counters of its own: the program or a shared library. */
struct ffuzz_module {
  uint64_t start;    /* index of its first counter in the map */
  uint64_t counters; /* true number of counters (the section itself is padded) */
  char name[112];    /* file name, cut, always ends with NUL; empty: its counters have no places */
};

/* One domain: keys start .. start+size-1 of the DSF array. */
struct ffuzz_domain {
  uint32_t start;
  uint32_t size;
  uint32_t reducer; /* enum fuzzfactory_reducer */
  uint32_t initial; /* value of every key before a run */
  char name[48];    /* cut, always ends with NUL */
};

#endif
