/* One input of a harness: its file, and its run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/input.h"

/* Up to the end; NULL if that is not reached. */
static uint8_t *read_all(FILE *file, size_t *size) {
  size_t room = 65536;
  uint8_t *data = malloc(room);
  *size = 0;
  while (data) {
    size_t n = fread(data + *size, 1, room - *size, file);
    if (n == 0) break;
    *size += n;
    if (*size < room) continue;
    uint8_t *larger = realloc(data, room *= 2);
    if (!larger) free(data);
    data = larger;
  }
  if (data && !ferror(file)) return data;
  free(data);
  return NULL;
}

HIDDEN uint8_t *ffuzz_driver_read(const char *path, size_t most, size_t *size) {
  FILE *file = path ? fopen(path, "rb") : stdin;
  uint8_t *data = file ? read_all(file, size) : NULL;
  if (!data) perror(path ? path : "standard input");
  if (file && path) fclose(file);
  if (data && *size > most) *size = most;
  return data;
}

/* On a block of exactly its size, so that a sanitizer sees a read behind the end. */
HIDDEN void ffuzz_driver_run_one(harness *test, const uint8_t *data, size_t size) {
  uint8_t *copy = malloc(size ? size : 1);
  if (!copy) return;
  memcpy(copy, data, size);
  test(copy, size);
  free(copy);
}
