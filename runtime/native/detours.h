/* Copies of functions that count their blocks and edges, as src/inspect/detours writes them, and the jumps that lead
 * from the originals to them. */
#ifndef FFUZZ_NATIVE_DETOURS_H
#define FFUZZ_NATIVE_DETOURS_H

#include "base.h"
#include "native/table.h"

#define JUMP_BYTES 5u

struct detours {
  uint64_t base; /* of the file */
  uint8_t *code;
  struct ffuzz_jump *jumps;
  uint8_t (*originals)[JUMP_BYTES]; /* what stands where the jumps are set */
  uint64_t *executions;             /* of each block, shared by all processes; NULL: they are not counted */
  uint32_t count;
};

/* What the table says of a file. */
struct detour_table {
  const struct ffuzz_jump *jumps;
  const uint32_t *fields; /* places of 32-bit distances to the file, as if the code stood where the file does */
  const uint8_t *code;
  uint32_t jump_count, field_count, code_bytes;
};

/* What the loader has mapped of a file. */
struct image {
  uint64_t start, end;
};

/* What the code counts: `hits` counters of coverage, and the executions of as many blocks. */
struct counted {
  uint32_t hits, executions;
};

/* Puts the code where it reaches all of the file, and the counters after it, each kind on pages of its own; no jump is
 * set yet. Returns the counters of coverage, or NULL if there is no room. */
HIDDEN uint8_t *ffuzz_detours_place(struct detours *detours, const struct detour_table *table,
                                    const struct image *image, struct counted counted);
/* The file is writable. */
HIDDEN void ffuzz_detours_set(const struct detours *detours);
HIDDEN void ffuzz_detours_remove(const struct detours *detours);

#endif
