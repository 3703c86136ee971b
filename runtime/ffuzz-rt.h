/* What the parts of the runtime share with each other. Nothing here is for users: their interface
 * is include/waypoints.h and the macros that ffuzz-cc defines.
 *
 * The runtime is plain C without libc start-up needs beyond mmap, fork and friends: it runs in
 * constructors, before main and before most sanitizers are ready, so it never calls malloc or
 * stdio. It must be linkable with every supported clang, hence no bitcode and no new builtins. */
#ifndef FFUZZ_RT_H
#define FFUZZ_RT_H

#include <stddef.h>
#include <stdint.h>

#include "channel.h"

#define HIDDEN __attribute__((visibility("hidden")))
#define CONTROL_FD 198
#define STATUS_FD 199

/* One object with counters of its own, as its constructor registered it. */
struct module {
  uint8_t *start, *stop;        /* section __sancov_cntrs, padded when our linker script was used */
  const uintptr_t *pcs, *pcs_end; /* pairs of address and flags, one per counter */
  uint64_t at;                  /* index of its first counter in the map */
  uint64_t count;               /* true number of counters */
  int mapped;                   /* its pages are the shared map; otherwise counters are copied */
};

typedef int dsf_t;

/* One registered domain. */
struct domain {
  uint32_t start, size, reducer, initial;
  uint32_t discarded; /* nothing counts until the next run */
  char name[48];
};

HIDDEN extern struct module *ffuzz_modules;
HIDDEN extern uint32_t ffuzz_module_count;
HIDDEN extern struct domain *ffuzz_domains;
HIDDEN extern uint32_t ffuzz_domain_count;
HIDDEN extern uint32_t ffuzz_dsf_total;

/* All maps of all domains; its address stays once the layout is fixed. */
extern uint32_t *__fuzzfactory_dsf_map;

/* Set once the layout is fixed: later modules and domains are not seen any more. */
HIDDEN extern int ffuzz_frozen;
/* The fork server runs, and this process is one of its children. */
HIDDEN extern int ffuzz_under_fuzzer;
/* The fuzzer understands stopped children (__AFL_PERSISTENT). */
HIDDEN extern int ffuzz_persistent;
/* Counts passes of the persistent loop, so that a test case is read once in each. */
HIDDEN extern uint32_t ffuzz_iteration;
/* Inputs that a program started by hand gets before its own. */
HIDDEN unsigned int ffuzz_replay_count(void);
HIDDEN int ffuzz_replay_path(char *path, size_t room, unsigned int number);
HIDDEN void ffuzz_replay_as_stdin(unsigned int number, unsigned int count);

/* The test case of the fuzzer: length word and bytes behind it; NULL without shared memory. */
extern unsigned int *__afl_fuzz_len;
extern unsigned char *__afl_fuzz_ptr;

HIDDEN void ffuzz_start_server(void);
HIDDEN void ffuzz_connect(void);
/* Counters for edges that are numbers: a module's numbers, and one of them is passed. */
void __ffuzz_guard_init(uint32_t *start, uint32_t *stop);
void __ffuzz_guard(uint32_t *guard);
HIDDEN void ffuzz_note_late_module(const uint8_t *start);
HIDDEN uint64_t ffuzz_map_size(void);
HIDDEN void ffuzz_die_with_code(uint32_t code);
HIDDEN int ffuzz_speaks_v1(void);
/* FuzzFactory's fuzzer: its segment is in use, and so many domains fit into it (all or none). */
HIDDEN int ffuzz_speaks_legacy(void);
#define FFUZZ_LEGACY_DOMAINS 4u
HIDDEN uint32_t ffuzz_legacy_domains(void);

HIDDEN size_t ffuzz_domains_bytes(void); /* whole pages */
HIDDEN void ffuzz_domains_attach(uint32_t *count, uint32_t *list, uint32_t capacity);
HIDDEN void ffuzz_domains_detach(void);
HIDDEN void ffuzz_domain_clear(dsf_t id);

/* Orders of the fuzzer through the channel; NULL when runs are ordered by AFL's pipes. */
HIDDEN extern struct ffuzz_runs *ffuzz_runs;
HIDDEN void ffuzz_runs_attach(uint8_t *base, const struct ffuzz_channel *c);
HIDDEN void ffuzz_wait_word(uint32_t *word, uint32_t old);
HIDDEN void ffuzz_await_word(uint32_t *word, uint32_t wanted);
HIDDEN void ffuzz_note_start(void); /* of a child's work */
HIDDEN void ffuzz_report_end(uint32_t number, int status);
HIDDEN void ffuzz_report_lasting_end(uint32_t number, int status, int quietly);
HIDDEN int ffuzz_next_case(unsigned int most);
HIDDEN uint32_t ffuzz_case_ends(void); /* judges it, waits behind the last; number of the next */
HIDDEN void ffuzz_case_begins(uint32_t index);
/* Bytes of a case, and how many. */
HIDDEN const uint8_t *ffuzz_case_bytes(uint32_t index, uint32_t *length);
/* Where the input goes; NULL if the fuzzer did not say. */
HIDDEN extern const struct ffuzz_input *ffuzz_input;

/* Descriptors below 64 that were open when the fork server started. */
HIDDEN extern uint64_t ffuzz_inherited;
/* This child is to be put back after each run, from the first call on. */
HIDDEN extern int ffuzz_lasting;
HIDDEN void ffuzz_snapshot(void);
/* This is a run of a snapshot; it is over, and the process would end with this status. */
HIDDEN int ffuzz_is_put_back(void);
HIDDEN void ffuzz_snapshot_run_ends(int status) __attribute__((noreturn));

/* Does this run show anything that the fuzzer does not know? Forgetting it puts all maps back. */
HIDDEN void ffuzz_novelty_start(uint8_t *map, const uint8_t *virgin, uint64_t size);
HIDDEN int ffuzz_edges_are_new(void);
HIDDEN void ffuzz_edges_forget(void);
HIDDEN int ffuzz_keys_are_new(const uint32_t *bars);
HIDDEN void ffuzz_domains_reset(void);

/* What the maps hold now, to be put there again before each run. */
struct saved_block {
  uint32_t number;
  uint8_t counts[64];
};
struct saved_key {
  uint32_t key, value;
};
HIDDEN uint32_t ffuzz_edges_count(void); /* blocks with a hit */
HIDDEN void ffuzz_edges_save(struct saved_block *to);
HIDDEN void ffuzz_edges_load(const struct saved_block *from, uint32_t count);
HIDDEN uint32_t ffuzz_keys_count(void); /* UINT32_MAX: not all of them are known */
HIDDEN void ffuzz_keys_save(struct saved_key *to);
HIDDEN void ffuzz_keys_load(const struct saved_key *from, uint32_t count);

HIDDEN void ffuzz_maps_place(void); /* variables of inlined updates name the array as it lies now */
HIDDEN void ffuzz_hooks_call(void); /* a run begins */

/* Edges of modules whose pages could not be shared. `map` is the first byte of the edge map. */
HIDDEN void ffuzz_copies_start(uint8_t *map, uint64_t size);
HIDDEN void ffuzz_copies_flush(void);
HIDDEN void ffuzz_copies_clear(void);
HIDDEN void ffuzz_copies_stop(void);

HIDDEN void ffuzz_show_life(void);
HIDDEN void ffuzz_run_begins(void);   /* forget what was counted before the loop */
HIDDEN void ffuzz_run_goes_on(void);  /* the next input of the same process */
HIDDEN void ffuzz_run_ends(void);     /* everything counted is in shared memory */
HIDDEN void ffuzz_run_is_over(void);  /* nothing counted from here on is seen */

HIDDEN void *ffuzz_pages(size_t bytes);
HIDDEN void *ffuzz_grow(void *old, size_t used, size_t needed);
HIDDEN void ffuzz_say(const char *text);

static inline uint64_t ffuzz_page_up(uint64_t n) {
  return (n + FFUZZ_PAGE - 1) & ~(uint64_t)(FFUZZ_PAGE - 1);
}

#endif
