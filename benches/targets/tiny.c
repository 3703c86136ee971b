/* A target that costs next to nothing, so that what is measured is the fuzzer: it sorts the first
 * bytes into classes and looks for a word.
 *
 * -DKEYS adds a map of 65,536 keys, of which a run touches 20; -DCRASH an end for one word. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define LOOKED_AT 16

#ifdef KEYS
#include "waypoints.h"

FUZZFACTORY_DSF_NEW(keys, 65536, FUZZFACTORY_REDUCER_MAX, 0);

/* Which of 16 keys is touched in each of 20 places, and with which value, is up to the input. */
static void touch_keys(const uint8_t *data, size_t size) {
  for (uint32_t i = 0; i < 20; i++) {
    uint32_t byte = data[i < size ? i : 0];
    FUZZFACTORY_DSF_MAX(keys, i * 3251 + (byte & 15), 1 + (byte >> 4));
  }
}
#endif

static int is_word(const uint8_t *data) {
  return data[0] == 'W' && data[1] == 'O' && data[2] == 'R' && data[3] == 'D';
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static volatile unsigned found;
  unsigned digits = 0, letters = 0, spaces = 0, others = 0;
  if (size == 0) return 0;
#ifdef KEYS
  touch_keys(data, size);
#endif
#ifdef CRASH
  if (size >= 22 && memcmp(data + 14, "CRASH-IT", 8) == 0) __builtin_trap();
#endif
  for (size_t i = 0; i < size && i < LOOKED_AT; i++) {
    uint8_t byte = data[i];
    if (byte >= '0' && byte <= '9')
      digits++;
    else if ((byte | 32) >= 'a' && (byte | 32) <= 'z')
      letters++;
    else if (byte == ' ' || byte == '\n')
      spaces++;
    else
      others++;
  }
  if (digits > 8) found += 1;
  if (letters > digits && spaces) found += 2;
  if (others == LOOKED_AT) found += 4;
  if (size >= 4 && is_word(data)) found += 8;
  return 0;
}
