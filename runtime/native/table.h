/* The blocks of a program without counters, as the fuzzer found them in its files. src/exec/native/table.rs writes
 * it into a memfd and names the descriptor in the environment.
 *
 * A header; for each file a struct ffuzz_code_file with what follows it, padding to 8 bytes, and `site_count` sites of
 * comparisons. */
#ifndef FFUZZ_NATIVE_TABLE_H
#define FFUZZ_NATIVE_TABLE_H

#include "base.h"

/* More are left out. */
#define MOST_FILES 256u
/* int3 */
#define BREAKPOINT 0xccu

#define FFUZZ_BLOCKS_ENV "FFUZZ_BLOCKS"
#define FFUZZ_BLOCKS_MAGIC 0x4b424646u /* "FFBK" in memory */

struct ffuzz_block_table {
  uint32_t magic;
  uint32_t files;
  uint32_t has_executions; /* copies count those of each block */
  uint32_t unused;
};

struct ffuzz_code_file {
  uint64_t device, inode; /* as stat() has them */
  uint32_t count;         /* of blocks, at least 1 */
  uint32_t site_count;
  uint32_t first_site;    /* number of the first one */
  uint32_t identity;      /* of the file by its name, the same on each machine */
  uint32_t edges;         /* counters after those of the blocks */
  uint32_t code_bytes;    /* of the copies of functions */
  uint32_t jump_count, field_count;
  /* uint32_t at[count]: addresses as in the file, ascending
   * struct ffuzz_jump jumps[jump_count], ascending
   * uint32_t fields[field_count]: see native/detours.h
   * uint8_t bytes[count]: what stands there
   * uint8_t counts[count]: enum ffuzz_counted_by
   * uint8_t code[code_bytes] */
};

/* How a block is counted. */
enum ffuzz_counted_by {
  FFUZZ_COUNTED_BY_BREAKPOINT,
  FFUZZ_COUNTED_BY_COPY,
  FFUZZ_COUNTED_BY_OTHERS, /* it has a copy without a counter: those after it show how often it ran */
};

/* From the original of a function to its copy. */
struct ffuzz_jump {
  uint32_t from; /* address as in the file */
  uint32_t to;   /* place in the code */
};

/* Where an operand is. */
enum ffuzz_side {
  FFUZZ_SIDE_REGISTER,
  FFUZZ_SIDE_HIGH_REGISTER, /* bits 8 to 15 */
  FFUZZ_SIDE_CONSTANT,      /* the value */
  FFUZZ_SIDE_MEMORY,        /* at base + index * scale + value */
  FFUZZ_SIDE_ABSOLUTE,      /* at an address of the file, the value */
  FFUZZ_SIDE_ADDRESS,       /* that address itself */
  FFUZZ_SIDE_VECTOR,        /* the low end of xmm0 to xmm15 */
};

/* How a function compares: see Comparer in llvm-passes/ffuzz-log.hpp. */
enum ffuzz_comparer {
  FFUZZ_COMPARES_MEMORY,
  FFUZZ_COMPARES_TEXT,
  FFUZZ_COMPARES_TEXT_OF_LENGTH,
  FFUZZ_COMPARES_SEARCH,
  FFUZZ_COMPARES_SEARCH_IN_LENGTH,
  FFUZZ_COMPARES_SEARCH_OF_LENGTHS,
  FFUZZ_COMPARES_STRING_TEXT,
  FFUZZ_COMPARES_STRINGS,
};
#define FFUZZ_IGNORES_CASE 0x80u

/* The instruction is no compare but an exclusive or: its result is zero if both are equal. */
#define FFUZZ_SITE_XOR 0x80u

/* Registers in the order of their encoding; another number is none. */
struct ffuzz_site_side {
  uint8_t form, base, index, scale;
};

/* A compare instruction, or a call of a function that compares. Ascending by address. */
struct ffuzz_code_site {
  uint32_t at;
  uint8_t byte;   /* what stands there */
  uint8_t length; /* of the instruction */
  uint8_t bytes;  /* of an operand, perhaps with FFUZZ_SITE_XOR; of a call an enum ffuzz_comparer, perhaps with FFUZZ_IGNORES_CASE */
  uint8_t kind;   /* enum ffuzz_comparison_kind, of a call FFUZZ_LOG_MEMORY or behind it */
  struct ffuzz_site_side sides[2];
  int64_t values[2]; /* of a call: where it leads by the first side, and whether it is a jump */
};

#endif
