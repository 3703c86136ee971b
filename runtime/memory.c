/* See memory.h. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory.h"
#include "pipes.h"

/* Not one of AFL's codes: only ffuzz says in words what it means. */
#define ERROR_NO_MEMORY 512

void ffuzz_say(const char *text) {
  if (write(2, text, strlen(text)) < 0) return; /* nobody to tell */
}

void *ffuzz_pages(size_t bytes) {
  void *at = mmap(NULL, ffuzz_page_up(bytes ? bytes : 1), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at != MAP_FAILED) return at;
  ffuzz_say("[-] ERROR: There is no memory for the maps of the domains.\n"
            "[-] Make them smaller, or give the program more memory (ffuzz -m).\n");
  ffuzz_die_with_code(ERROR_NO_MEMORY);
  _exit(1);
}

/* Room for `needed` bytes that begins with the `used` bytes of `old`. Whole pages at a time, so
 * most calls return `old` itself. */
void *ffuzz_grow(void *old, size_t used, size_t needed) {
  if (old && ffuzz_page_up(needed) == ffuzz_page_up(used ? used : 1)) return old;
  void *at = ffuzz_pages(needed);
  if (!old) return at;
  memcpy(at, old, used);
  munmap(old, ffuzz_page_up(used ? used : 1));
  return at;
}
