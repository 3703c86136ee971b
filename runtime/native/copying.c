/* memcpy and its relatives for this library's own code. Those of libc may have breakpoints (`--modules all`), and a
 * breakpoint between two runs, when signals are blocked, ends the process. The compiler calls them as well. */
#include <stddef.h>
#include <stdint.h>

#include "base.h"

HIDDEN void *memcpy(void *to, const void *from, size_t bytes) {
  void *at = to;
  __asm__ volatile("rep movsb" : "+D"(at), "+S"(from), "+c"(bytes) : : "memory");
  return to;
}

HIDDEN void *memmove(void *to, const void *from, size_t bytes) {
  if ((uintptr_t)to - (uintptr_t)from >= bytes) return memcpy(to, from, bytes);
  uint8_t *end = (uint8_t *)to + bytes;
  const uint8_t *last = (const uint8_t *)from + bytes;
  while (end != to) {
    *--end = *--last;
    __asm__ volatile("" : : : "memory"); /* or the compiler calls memmove */
  }
  return to;
}

HIDDEN void *memset(void *to, int byte, size_t bytes) {
  void *at = to;
  __asm__ volatile("rep stosb" : "+D"(at), "+c"(bytes) : "a"(byte) : "memory");
  return to;
}

HIDDEN int memcmp(const void *one, const void *other, size_t bytes) {
  const uint8_t *a = one, *b = other;
  for (; bytes; a++, b++, bytes--)
    if (*a != *b) return *a < *b ? -1 : 1;
  return 0;
}

HIDDEN int bcmp(const void *one, const void *other, size_t bytes) { return memcmp(one, other, bytes); }
