#define _GNU_SOURCE
#include "net/answers.h"

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/transcript.h"

#define KEYS 65536u
#define MAXIMUM 0 /* enum fuzzfactory_reducer */
#define LONGEST 256u
/* Bytes in which a status is looked for, and its digits. */
#define HEAD 16u
#define DIGITS 3u
/* Of the first word of an answer without a status. */
#define WORD 4u

extern int __ffuzz_new_domain(const char *name, uint32_t size, uint32_t reducer, uint32_t initial) __attribute__((weak));
extern void __fuzzfactory_dsf_max(int id, uint32_t key, uint32_t value) __attribute__((weak));

static int domain = -1;
static regex_t wanted;
static int has_expression;

static char answer[LONGEST];
static uint32_t length;

/* What an answer is a case of. */
struct class {
  char text[32];
  uint32_t length;
};
static struct class before = {"start", 5};

HIDDEN void ffuzz_net_answers_start(void) {
  const char *expression = getenv("FFUZZ_NET_ANSWERS");
  if (!expression || !&__ffuzz_new_domain || !&__fuzzfactory_dsf_max) return;
  has_expression = *expression && !regcomp(&wanted, expression, REG_EXTENDED);
  domain = __ffuzz_new_domain("answers", KEYS, MAXIMUM, 0);
}

HIDDEN void ffuzz_net_answers_add(const void *bytes, size_t count) {
  if (domain < 0) return;
  if (count > LONGEST - length) count = LONGEST - length;
  memcpy(answer + length, bytes, count);
  length += (uint32_t)count;
}

static int is_digit(char c) { return c >= '0' && c <= '9'; }

/* The end of a word, of which one of many lines ("220-") is one, too. */
static int ends_word(uint32_t at) { return at == length || strchr(" -\r\n", answer[at]); }

/* Where a word is a number of three digits; `length`: nowhere. */
static uint32_t status(void) {
  uint32_t most = length < HEAD ? length : HEAD;
  for (uint32_t at = 0, end; at + DIGITS <= most; at = end + 1) {
    for (end = at; end < length && is_digit(answer[end]);) end++;
    if (end - at == DIGITS && ends_word(end)) return at;
  }
  return length;
}

static struct class part(uint32_t start, uint32_t count) {
  struct class class = {.length = count < sizeof class.text ? count : sizeof class.text};
  memcpy(class.text, answer + start, class.length);
  return class;
}

static int is_letter(char c) { return c > ' ' && c < 127; }

/* The beginning of the first word, without the values of its digits; of length 0 if it is no text. */
static struct class first_word(void) {
  struct class class = {.length = 0};
  while (class.length < WORD && class.length < length && is_letter(answer[class.length])) {
    char c = answer[class.length];
    class.text[class.length++] = is_digit(c) ? '0' : c;
  }
  if (class.length < WORD && !ends_word(class.length)) class.length = 0;
  return class;
}

/* Many protocols begin an answer by the number of the question. */
static struct class first_own_byte(const uint8_t *message, size_t message_length) {
  uint32_t at = 0;
  while (at + 1 < length && at < message_length && (uint8_t)answer[at] == message[at]) at++;
  struct class class = {.length = 0};
  class.length = (uint32_t)snprintf(class.text, sizeof class.text, "x%02x", (uint8_t)answer[at]);
  return class;
}

static struct class class_of(const uint8_t *message, size_t message_length) {
  if (has_expression) {
    regmatch_t groups[2] = {{0, (regoff_t)length}};
    if (regexec(&wanted, answer, 2, groups, REG_STARTEND)) return (struct class){"other", 5};
    const regmatch_t *group = &groups[groups[1].rm_so >= 0];
    return part((uint32_t)group->rm_so, (uint32_t)(group->rm_eo - group->rm_so));
  }
  uint32_t number = status();
  if (number < length) return part(number, DIGITS);
  struct class word = first_word();
  return word.length ? word : first_own_byte(message, message_length);
}

/* FNV-1a. */
static uint32_t hash(const char *bytes, size_t count) {
  uint32_t so_far = 2166136261u;
  while (count--) so_far = (so_far ^ (uint8_t)*bytes++) * 16777619u;
  return (so_far ^ so_far >> 16) % KEYS;
}

HIDDEN void ffuzz_net_answers_end(const uint8_t *message, size_t message_length) {
  static const char arrow[] = " -> ";
  char pair[2 * sizeof before.text + sizeof arrow];
  if (!length) return;
  struct class class = class_of(message, message_length);
  size_t used = before.length;
  memcpy(pair, before.text, used);
  memcpy(pair + used, arrow, sizeof arrow - 1), used += sizeof arrow - 1;
  memcpy(pair + used, class.text, class.length), used += class.length;
  uint32_t key = hash(pair, used);
  before = class;
  length = 0;
  __fuzzfactory_dsf_max(domain, key, 1);
  ffuzz_net_note(NET_ANSWERS, 0, (int)key, pair, used);
}
