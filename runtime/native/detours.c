/* See detours.h. */
#define _GNU_SOURCE
#include "native/detours.h"

#include <string.h>
#include <sys/mman.h>

#include "memory.h"

/* Between two places that are tried, and how many there are: not beyond what a jump reaches. */
#define STEP (16u << 20)
#define MOST_TRIED 96u
/* In front of what is mapped after the program, which grows: the heap. */
#define DISTANCE (256u << 20)

#define JUMP 0xe9u

static uint8_t *map_at(uint64_t at, size_t bytes) {
  void *got = mmap((void *)at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  /* Older kernels take the place for a wish. */
  if (got != MAP_FAILED && got != (void *)at) munmap(got, bytes);
  return got == (void *)at ? got : NULL;
}

static uint8_t *map_near(const struct image *image, size_t bytes) {
  uint64_t below = (image->start & ~(uint64_t)(FFUZZ_PAGE - 1)) - bytes, above = ffuzz_page_up(image->end) + DISTANCE;
  uint8_t *found = NULL;
  for (uint64_t i = 1; i <= MOST_TRIED && !found; i++) {
    if (i * STEP < below) found = map_at(below - i * STEP, bytes);
    if (!found) found = map_at(above + i * STEP, bytes);
  }
  return found;
}

static int is_reached(uint64_t from, size_t bytes, const struct image *image) {
  uint64_t low = from < image->start ? from : image->start, high = from + bytes > image->end ? from + bytes : image->end;
  return high - low <= INT32_MAX;
}

static void write_code(uint8_t *code, const struct detour_table *table, uint64_t base) {
  memcpy(code, table->code, table->code_bytes);
  for (uint32_t i = 0; i < table->field_count; i++) {
    uint32_t distance;
    memcpy(&distance, code + table->fields[i], sizeof distance);
    distance -= (uint32_t)((uint64_t)code - base);
    memcpy(code + table->fields[i], &distance, sizeof distance);
  }
}

/* Shared, so that what counts a run is not put back with the program, and outlives its process. */
static int share(uint8_t *at, size_t bytes) {
  void *got = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  return got == (void *)at;
}

HIDDEN uint8_t *ffuzz_detours_place(struct detours *detours, const struct detour_table *table,
                                    const struct image *image, struct counted counted) {
  if (!table->jump_count) return NULL;
  size_t code_bytes = ffuzz_page_up(table->code_bytes), hit_bytes = ffuzz_page_up(counted.hits);
  size_t execution_bytes = ffuzz_page_up(counted.executions * sizeof *detours->executions);
  size_t bytes = code_bytes + hit_bytes + execution_bytes;
  uint8_t *code = map_near(image, bytes);
  if (!code) return NULL;
  uint8_t *executions = code + code_bytes + hit_bytes;
  int is_good = is_reached((uint64_t)code, bytes, image) && (!execution_bytes || share(executions, execution_bytes));
  if (is_good) write_code(code, table, detours->base);
  if (!is_good || mprotect(code, code_bytes, PROT_READ | PROT_EXEC)) {
    munmap(code, bytes);
    return NULL;
  }
  detours->code = code;
  if (execution_bytes) detours->executions = (void *)executions;
  detours->count = table->jump_count;
  detours->jumps = ffuzz_pages(detours->count * sizeof *detours->jumps);
  detours->originals = ffuzz_pages(detours->count * sizeof *detours->originals);
  memcpy(detours->jumps, table->jumps, detours->count * sizeof *detours->jumps);
  for (uint32_t i = 0; i < detours->count; i++)
    memcpy(detours->originals[i], (const void *)(detours->base + table->jumps[i].from), JUMP_BYTES);
  mprotect(detours->jumps, detours->count * sizeof *detours->jumps, PROT_READ);
  mprotect(detours->originals, detours->count * sizeof *detours->originals, PROT_READ);
  return code + code_bytes;
}

HIDDEN void ffuzz_detours_set(const struct detours *detours) {
  for (uint32_t i = 0; i < detours->count; i++) {
    uint8_t *from = (uint8_t *)(detours->base + detours->jumps[i].from);
    uint32_t distance = (uint32_t)(detours->code + detours->jumps[i].to - (from + JUMP_BYTES));
    from[0] = JUMP;
    memcpy(from + 1, &distance, sizeof distance);
  }
}

HIDDEN void ffuzz_detours_remove(const struct detours *detours) {
  for (uint32_t i = 0; i < detours->count; i++)
    memcpy((void *)(detours->base + detours->jumps[i].from), detours->originals[i], JUMP_BYTES);
}
