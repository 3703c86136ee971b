/* One input of a harness: its file, and its run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/input.h"
#include "driver/crash.h"
#include "edge-map.h"

#define COMPARED 1024u /* bytes of an input that the harness may not change */

/* By it the fuzzer knows a harness with this driver. */
__attribute__((used)) static const char marker[] = "##FFUZZ_HARNESS##";

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

/* Not by memcmp, which Rust programs log as a comparison of their own. */
static int is_same_block(const uint8_t *a, const uint8_t *b, size_t size) {
  uint64_t x, y, difference = 0;
  size_t at = 0;
  for (; at + sizeof x <= size; at += sizeof x) {
    memcpy(&x, a + at, sizeof x);
    memcpy(&y, b + at, sizeof y);
    difference |= x ^ y;
  }
  for (; at < size; at++) difference |= a[at] ^ b[at];
  return !difference;
}

/* Whole, or the ends of a long one, which keeps the cost below 1 % of the shortest runs. */
static int is_same(const uint8_t *a, const uint8_t *b, size_t size) {
  if (size <= COMPARED) return is_same_block(a, b, size);
  size_t part = COMPARED / 2, last = size - part;
  return is_same_block(a, b, part) && is_same_block(a + last, b + last, part);
}

/* On a block of exactly its size, so that a sanitizer sees a read behind the end. */
HIDDEN void ffuzz_driver_run_one(harness *test, const uint8_t *data, size_t size) {
  __asm__ volatile("" : : "r"(marker));
  uint8_t *copy = malloc(size ? size : 1);
  if (!copy) return;
  memcpy(copy, data, size);
  /* Any other value than -1 is 0, as in libFuzzer. */
  ffuzz_run_reject(test(copy, size) == -1);
  if (!is_same(copy, data, size)) ffuzz_driver_overwritten();
  free(copy);
}
