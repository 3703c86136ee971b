/* Domains by name: the record of each, and the refusal of what does not fit. */
#define _GNU_SOURCE
#include <string.h>
#include <unistd.h>

#include "registration.h"
#include "maps.h"
#include "memory.h"
#include "process.h"

HIDDEN void ffuzz_registration(void) {}

static void append(char *line, size_t room, const char *text) {
  size_t used = strlen(line);
  strncat(line, text, room - used - 1);
}

static void append_number(char *line, size_t room, uint32_t n) {
  char digits[12];
  char *at = digits + sizeof digits - 1;
  *at = 0;
  do *--at = (char)('0' + n % 10);
  while (n /= 10);
  append(line, room, at);
}

static void refuse_size(uint32_t size) {
  char line[80] = "[-] ERROR: Invalid domain-specific map size: ";
  append_number(line, sizeof line, size);
  append(line, sizeof line, "\n");
  ffuzz_say(line);
  _exit(1);
}

static void refuse_conflict(const char *name) {
  char line[160] = "[-] ERROR: Domain \"";
  append(line, sizeof line, name);
  append(line, sizeof line, "\" is registered twice with different size, reducer or initial value.\n");
  ffuzz_say(line);
  _exit(1);
}

static dsf_t find(const struct domain *wanted) {
  for (uint32_t i = 0; i < ffuzz_domain_count; i++) {
    const struct domain *d = &ffuzz_domains[i];
    if (strcmp(d->name, wanted->name)) continue;
    if (d->size != wanted->size || d->reducer != wanted->reducer || d->initial != wanted->initial)
      refuse_conflict(d->name);
    return (dsf_t)i;
  }
  return -1;
}

/* A variable `__afl_foo_dsf` stands for the domain "foo". */
static void set_name(char *to, size_t size, const char *name) {
  size_t length = strlen(name);
  if (length > 10 && !strncmp(name, "__afl_", 6) && !strcmp(name + length - 4, "_dsf")) {
    name += 6;
    length -= 10;
  }
  memcpy(to, name, length < size ? length : size - 1);
}

/* Name, size, reducer and initial value are the domain's record. A second registration of the same
 * record (the same domain in a shared library) is the same domain. Once the fuzzer has been told
 * the layout a new domain has no place any more: it gets an id that every update ignores. */
dsf_t __ffuzz_new_domain(const char *name, uint32_t size, uint32_t reducer, uint32_t initial) {
  struct domain new = {.start = ffuzz_dsf_total, .size = size, .reducer = reducer, .initial = initial};
  if (size == 0 || size > UINT32_MAX - ffuzz_dsf_total) refuse_size(size);
  if (name) {
    set_name(new.name, sizeof new.name, name);
  } else {
    append(new.name, sizeof new.name, "map");
    append_number(new.name, sizeof new.name, ffuzz_domain_count);
  }
  dsf_t known = name ? find(&new) : -1;
  if (known >= 0 || ffuzz_frozen) return known;
  ffuzz_domain_add(&new);
  ffuzz_maps_place();
  return (dsf_t)ffuzz_domain_count++;
}

/* The reference's registration: its domains have no names. */
dsf_t __fuzzfactory_new_domain(uint32_t size, uint32_t reducer, uint32_t initial) {
  return __ffuzz_new_domain(NULL, size, reducer, initial);
}
