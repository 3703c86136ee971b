/* See allocations.h. The functions are those of llvm-passes/ffuzz-allocations.hpp. As there, a request counts before it
 * is met, because operator new throws if it cannot be. */
#define _GNU_SOURCE
#include "native/allocations.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "native/callers.h"

/* runtime/domains/ has them. */
void __ffuzz_mem_requested(uint32_t key, uint64_t count, uint64_t size);
void __ffuzz_mem_copied(uint32_t key, const char *copy);
void __ffuzz_heap_got(uint32_t key, const void *block, uint64_t count, uint64_t size);
void __ffuzz_heap_placed(uint32_t key, void *const *place, uint32_t status, uint64_t size);
void __ffuzz_heap_copied(uint32_t key, const char *copy);
void __ffuzz_heap_gives(const void *block);
void __ffuzz_heap_moved(uint32_t key, const void *old, const void *block, uint64_t count, uint64_t size);
void __ffuzz_heap_hold(void);
void __ffuzz_heap_let_go(void);

#define KEY ffuzz_caller_key(__builtin_return_address(0))

static int has_mem, has_heap;

static void request(uint32_t key, size_t count, size_t size) {
  if (key && has_mem) __ffuzz_mem_requested(key, count, size);
}

static void *got(uint32_t key, void *block, size_t count, size_t size) {
  int error = errno;
  if (key && has_heap) __ffuzz_heap_got(key, block, count, size);
  errno = error;
  return block;
}

static char *copied(uint32_t key, char *copy) {
  int error = errno;
  if (key && has_mem) __ffuzz_mem_copied(key, copy);
  if (key && has_heap) __ffuzz_heap_copied(key, copy);
  errno = error;
  return copy;
}

static void gives(const void *block) {
  int error = errno;
  if (has_heap) __ffuzz_heap_gives(block);
  errno = error;
}

static void *moved(uint32_t key, const void *old, void *block, size_t count, size_t size) {
  int error = errno;
  if (key && has_heap)
    __ffuzz_heap_moved(key, old, block, count, size);
  else if (block)
    gives(old);
  errno = error;
  return block;
}

static void *our_malloc(size_t size) {
  uint32_t key = KEY;
  request(key, 1, size);
  return got(key, malloc(size), 1, size);
}

static void *our_calloc(size_t count, size_t size) {
  uint32_t key = KEY;
  request(key, count, size);
  return got(key, calloc(count, size), count, size);
}

static void *our_realloc(void *old, size_t size) {
  uint32_t key = KEY;
  request(key, 1, size);
  return moved(key, old, realloc(old, size), 1, size);
}

static void *our_reallocarray(void *old, size_t count, size_t size) {
  uint32_t key = KEY;
  request(key, count, size);
  return moved(key, old, reallocarray(old, count, size), count, size);
}

static void *our_aligned_alloc(size_t alignment, size_t size) {
  uint32_t key = KEY;
  request(key, 1, size);
  return got(key, aligned_alloc(alignment, size), 1, size);
}

static void *our_memalign(size_t alignment, size_t size) {
  uint32_t key = KEY;
  request(key, 1, size);
  return got(key, memalign(alignment, size), 1, size);
}

static void *our_valloc(size_t size) {
  uint32_t key = KEY;
  request(key, 1, size);
  return got(key, valloc(size), 1, size);
}

static void *our_pvalloc(size_t size) {
  uint32_t key = KEY;
  request(key, 1, size);
  return got(key, pvalloc(size), 1, size);
}

static int our_posix_memalign(void **place, size_t alignment, size_t size) {
  uint32_t key = KEY;
  request(key, 1, size);
  int status = posix_memalign(place, alignment, size), error = errno;
  if (key && has_heap) __ffuzz_heap_placed(key, place, (uint32_t)status, size);
  errno = error;
  return status;
}

static char *our_strdup(const char *text) { return copied(KEY, strdup(text)); }

static char *our_strndup(const char *text, size_t most) { return copied(KEY, strndup(text, most)); }

static void our_free(void *block) {
  gives(block);
  free(block);
}

/* All forms of operator new and delete: further arguments are passed on, also where there are none. */
typedef void *new_function(size_t, size_t, size_t);
typedef void delete_function(void *, size_t, size_t);

#define NEW(NAME)                                                       \
  static new_function *real##NAME;                                      \
  static void *our##NAME(size_t size, size_t second, size_t third) {    \
    uint32_t key = KEY;                                                 \
    request(key, 1, size);                                              \
    return got(key, real##NAME(size, second, third), 1, size);          \
  }
#define DELETE(NAME)                                                    \
  static delete_function *real##NAME;                                   \
  static void our##NAME(void *block, size_t second, size_t third) {     \
    gives(block);                                                       \
    real##NAME(block, second, third);                                   \
  }

#define ALL_NEW(DO)                                                     \
  DO(_Znwm)                                                             \
  DO(_Znam)                                                             \
  DO(_ZnwmRKSt9nothrow_t)                                               \
  DO(_ZnamRKSt9nothrow_t)                                               \
  DO(_ZnwmSt11align_val_t)                                              \
  DO(_ZnamSt11align_val_t)                                              \
  DO(_ZnwmSt11align_val_tRKSt9nothrow_t)                                \
  DO(_ZnamSt11align_val_tRKSt9nothrow_t)
#define ALL_DELETE(DO)                                                  \
  DO(_ZdlPv)                                                            \
  DO(_ZdaPv)                                                            \
  DO(_ZdlPvm)                                                           \
  DO(_ZdaPvm)                                                           \
  DO(_ZdlPvRKSt9nothrow_t)                                              \
  DO(_ZdaPvRKSt9nothrow_t)                                              \
  DO(_ZdlPvSt11align_val_t)                                             \
  DO(_ZdaPvSt11align_val_t)                                             \
  DO(_ZdlPvmSt11align_val_t)                                            \
  DO(_ZdaPvmSt11align_val_t)

ALL_NEW(NEW)
ALL_DELETE(DELETE)

#define CPP(NAME) {#NAME, our##NAME, &real##NAME},
#define C(NAME) {#NAME, our_##NAME, NULL}

static const struct replacement functions[] = {
    C(malloc),        C(calloc),   C(realloc), C(reallocarray), C(aligned_alloc),
    C(memalign),      C(valloc),   C(pvalloc), C(posix_memalign), C(strdup),
    C(strndup),       C(free),
    {"__strdup", our_strdup, NULL},
    {"__strndup", our_strndup, NULL},
    ALL_NEW(CPP)
    ALL_DELETE(CPP)
};

HIDDEN void ffuzz_allocations_start(int counts_mem, int counts_heap) {
  has_mem = counts_mem;
  has_heap = counts_heap;
  if (!has_mem && !has_heap) return;
  /* Another thread may have the lock when the program forks. */
  if (has_heap) pthread_atfork(__ffuzz_heap_hold, __ffuzz_heap_let_go, __ffuzz_heap_let_go);
  ffuzz_callers_redirect(functions, sizeof functions / sizeof *functions);
}
