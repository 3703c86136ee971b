/* Does this run show edges that the fuzzer does not know? Forgetting it puts the map back. */
#ifndef FFUZZ_NOVELTY_H
#define FFUZZ_NOVELTY_H

#include "base.h"

HIDDEN void ffuzz_novelty_start(uint8_t *map, const uint8_t *virgin, uint64_t size);
HIDDEN int ffuzz_edges_are_new(void);
/* After a run that showed nothing new: its edges, or their hit counts as well, as one number. */
HIDDEN uint64_t ffuzz_edges_hash(int counts);
HIDDEN void ffuzz_edges_forget(void);
/* Classes of hit counts that were not seen yet, laid out like the map. */
HIDDEN const uint8_t *ffuzz_edges_unseen(void);

/* What the map holds now, to be put there again before each run. */
struct saved_block {
  uint32_t number;
  uint8_t counts[64];
};
HIDDEN uint32_t ffuzz_edges_count(void); /* blocks with a hit */
HIDDEN void ffuzz_edges_save(struct saved_block *to);
HIDDEN void ffuzz_edges_load(const struct saved_block *from, uint32_t count);

#endif
