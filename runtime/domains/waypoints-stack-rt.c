/* Domain `stack`: key 0 is the deepest stack of the run in bytes, counted from the first function
 * of a thread; every other key is one function and how often it stood on the stack at the same
 * time, so a recursion shows by name. Functions that were inlined have no frame and no key. */
#include <stddef.h>
#include <sys/mman.h>
#define __AFL_COMPILER 1
#include "waypoints.h"

#define KEYS 65536u
#define MOST_FRAMES (1u << 20) /* 8 bytes a frame at the least would be an 8 MB stack */

FFUZZ_NEW_DOMAIN(__afl_stack_dsf, "stack", KEYS, FUZZFACTORY_REDUCER_MAX, 0)
FFUZZ_NAME_KEY("stack", 0, "deepest stack in bytes")

/* One for each thread; pages that are never touched cost nothing. */
struct stack {
  uint32_t depth; /* frames now */
  uint32_t on_stack[KEYS];
  uint16_t function[MOST_FRAMES];
};

static __thread struct stack *stack;
static __thread uintptr_t base;

static struct stack *new_stack(void) {
  void *at = mmap(NULL, sizeof *stack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at == MAP_FAILED ? NULL : at;
}

/* Returns the number of frames outside of this one, which the function keeps for its return. */
uint32_t __ffuzz_stack_enter(uint32_t key) {
  uintptr_t here = (uintptr_t)__builtin_frame_address(0);
  if (here > base) base = here;
  uint64_t bytes = base - here;
  __fuzzfactory_dsf_max(__afl_stack_dsf, 0, bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)bytes);
  if (!stack && !(stack = new_stack())) return 0;
  uint32_t outside = stack->depth;
  if (outside >= MOST_FRAMES) return outside;
  key %= KEYS;
  if (key == 0) key = 1;
  stack->function[stack->depth++] = (uint16_t)key;
  __fuzzfactory_dsf_max(__afl_stack_dsf, key, ++stack->on_stack[key]);
  return outside;
}

/* So many frames are left: a return, or whatever skipped the returns of several. */
void __ffuzz_stack_back(uint32_t frames) {
  if (!stack) return;
  while (stack->depth > frames) stack->on_stack[stack->function[--stack->depth]]--;
}
