/* What ffuzz and a harness that makes inputs by itself share. src/exec/mutator.rs mirrors it; a test compares offsets.
 *
 * The fuzzer starts the harness once more and names a memfd in FFUZZ_MUTATOR=<fd>. That process runs no inputs: it
 * calls LLVMFuzzerCustomMutator and LLVMFuzzerCustomCrossOver. Each side writes its own words, counts the last of them
 * up and waits for the other's count. Nothing the harness writes is trusted. */
#ifndef FFUZZ_DRIVER_MUTATIONS_H
#define FFUZZ_DRIVER_MUTATIONS_H

#include "base.h"

#define FFUZZ_MUTATOR_ENV "FFUZZ_MUTATOR"
#define FFUZZ_MUTATIONS_MAGIC 0x544d4646u /* "FFMT" in memory */
#define FFUZZ_MUTATIONS_VERSION 1u
#define FFUZZ_LONGEST_INPUT (1u << 20)

enum ffuzz_mutations_order {
  FFUZZ_ORDER_MUTATE = 1, /* `first` */
  FFUZZ_ORDER_CROSS,      /* `first` with `second` */
  FFUZZ_ORDER_GO_ON,      /* `second` has what LLVMFuzzerMutate returns, of `size` bytes */
};

enum ffuzz_mutations_report {
  FFUZZ_REPORT_READY = 1,
  FFUZZ_REPORT_MADE,  /* `first` has the input, of `size` bytes; 0: there is none */
  FFUZZ_REPORT_WANTS, /* LLVMFuzzerMutate is called for `second`, of `size` bytes and at most `most` */
};

struct ffuzz_mutations {
  /* written by the fuzzer */
  uint32_t magic, version;
  uint32_t order; /* enum ffuzz_mutations_order */
  uint32_t seed;
  uint32_t first_size, second_size;
  uint32_t most; /* bytes of the result */
  uint32_t ordered;
  uint32_t pad[8];
  /* written by the harness */
  uint32_t report; /* enum ffuzz_mutations_report */
  uint32_t size, wanted;
  uint32_t answered;
  uint32_t pad_harness[12];
  /* inputs */
  uint8_t first[FFUZZ_LONGEST_INPUT], second[FFUZZ_LONGEST_INPUT];
};

/* Makes inputs until the fuzzer ends, if it has started the harness for that; returns otherwise. */
HIDDEN void ffuzz_driver_make_inputs(void);
/* Changes bytes by the fuzzer's mutations. 0: no fuzzer asks for inputs. */
HIDDEN size_t ffuzz_driver_ask_for_mutation(uint8_t *data, size_t size, size_t most);

#endif
