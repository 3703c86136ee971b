/* The blocks of a program without counters, as the fuzzer found them in its files. src/exec/native/table.rs writes
 * it into a memfd and names the descriptor in the environment.
 *
 * A header; for each file a struct ffuzz_code_file, `count` offsets, `count` bytes, and padding to 8 bytes. */
#ifndef FFUZZ_NATIVE_TABLE_H
#define FFUZZ_NATIVE_TABLE_H

#include "base.h"

#define FFUZZ_BLOCKS_ENV "FFUZZ_BLOCKS"
#define FFUZZ_BLOCKS_MAGIC 0x4b424646u /* "FFBK" in memory */

struct ffuzz_block_table {
  uint32_t magic;
  uint32_t files;
};

struct ffuzz_code_file {
  uint64_t device, inode; /* as stat() has them */
  uint32_t count;         /* of blocks, at least 1 */
  uint32_t pad;
  /* uint32_t at[count]: addresses as in the file, ascending
   * uint8_t bytes[count]: what stands there */
};

#endif
