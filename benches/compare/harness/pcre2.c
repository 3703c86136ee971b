/* pcre2: the bits of byte 0 are options; the first line of the rest is a pattern, what follows a text.
 * Matching has small limits: a pattern may take exponential time. */
#include <stdint.h>
#include <string.h>

#include "pcre2.h"

#define STEPS 5000

static void match(pcre2_code *code, pcre2_match_context *limits, PCRE2_SPTR text, size_t size) {
  pcre2_match_data *found = pcre2_match_data_create_from_pattern(code, NULL);
  if (!found) return;
  int workspace[64];
  pcre2_match(code, text, size, 0, 0, found, limits);
  pcre2_dfa_match(code, text, size, 0, 0, found, limits, workspace, 64);
  pcre2_match_data_free(found);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 1) return 0;
  uint32_t options = (data[0] & 1 ? PCRE2_UTF : 0) | (data[0] & 2 ? PCRE2_EXTENDED : 0) |
                     (data[0] & 4 ? PCRE2_CASELESS | PCRE2_MULTILINE : 0) | (data[0] & 8 ? PCRE2_UCP : 0);
  const uint8_t *pattern = data + 1, *line = memchr(pattern, '\n', size - 1);
  const uint8_t *text = line ? line + 1 : data + size;
  size_t length = line ? (size_t)(line - pattern) : size - 1;
  int error;
  size_t at;
  pcre2_code *code = pcre2_compile(pattern, length, options, &error, &at, NULL);
  if (!code) return 0;
  pcre2_match_context *limits = pcre2_match_context_create(NULL);
  if (limits) {
    pcre2_set_match_limit(limits, STEPS);
    pcre2_set_depth_limit(limits, 500);
    pcre2_set_heap_limit(limits, 4096);
    match(code, limits, text, (size_t)(data + size - text));
    pcre2_match_context_free(limits);
  }
  pcre2_code_free(code);
  return 0;
}
