/* Domain maps: the table of domains, the update functions and the memory behind them. */
#ifndef FFUZZ_DOMAINS_H
#define FFUZZ_DOMAINS_H

#include "base.h"

typedef int dsf_t;

/* One registered domain. */
struct domain {
  uint32_t start, size, reducer, initial;
  uint32_t discarded; /* nothing counts until the next run */
  char name[48];
};

HIDDEN extern struct domain *ffuzz_domains;
HIDDEN extern uint32_t ffuzz_domain_count;
HIDDEN extern uint32_t ffuzz_dsf_total;

/* All maps of all domains; its address stays once the layout is fixed. */
extern uint32_t *__fuzzfactory_dsf_map;

HIDDEN void ffuzz_domain_add(const struct domain *new);

HIDDEN size_t ffuzz_domains_bytes(void); /* whole pages */
HIDDEN void ffuzz_domains_attach(uint32_t *count, uint32_t *list, uint32_t capacity);
HIDDEN void ffuzz_domains_detach(void);
HIDDEN void ffuzz_domains_reset(void);
HIDDEN void ffuzz_domain_clear(dsf_t id);

/* Does this run show a key that the fuzzer wants to see? */
HIDDEN int ffuzz_keys_are_new(const uint32_t *bars);

/* What the maps hold now, to be put there again before each run. */
struct saved_key {
  uint32_t key, value;
};
HIDDEN uint32_t ffuzz_keys_count(void); /* UINT32_MAX: not all of them are known */
HIDDEN void ffuzz_keys_save(struct saved_key *to);
HIDDEN void ffuzz_keys_load(const struct saved_key *from, uint32_t count);

#endif
