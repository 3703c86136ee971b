/* demangle: byte 0 selects the language of a linker's names, one a line, at most 64; they are printed to nowhere,
   16 KiB of each. */
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "demangle.h"

#define MOST_NAMES 64
#define LONGEST_OUTPUT (16u << 10)

static jmp_buf enough;

/* What calls it keeps nothing but its stack. */
static void nowhere(const char *text, size_t size, void *handle) {
  size_t *total = handle;
  (void)text;
  *total += size;
  if (*total > LONGEST_OUTPUT) longjmp(enough, 1);
}

static void demangle(const char *name, int language) {
  static size_t total;
  total = 0;
  if (setjmp(enough)) return;
  switch (language) {
    case 0: rust_demangle_callback(name, 0, nowhere, &total); break;
    case 1: free(dlang_demangle(name, 0)); break;
    case 2: java_demangle_v3_callback(name, nowhere, &total); break;
    default: cplus_demangle_v3_callback(name, DMGL_PARAMS | DMGL_ANSI | DMGL_TYPES | DMGL_VERBOSE, nowhere, &total);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 1) return 0;
  char *names = malloc(size);
  if (!names) return 0;
  memcpy(names, data + 1, size - 1);
  names[size - 1] = 0;
  char *name = names, *end;
  for (int left = MOST_NAMES; left && name; left--, name = end) {
    end = strchr(name, '\n');
    if (end) *end++ = 0;
    demangle(name, data[0] & 3);
  }
  free(names);
  return 0;
}
