/* See modules.h. The guest's files are mapped into the emulator's process as they are. */
#define _GNU_SOURCE
#include "qemu/modules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct mapping {
  uintptr_t start, end;
  uint64_t offset;
  uint64_t name; /* a hash */
  const char *path;
  int chosen;
};

static struct mapping *mappings;
static size_t mapping_count;
static const char *chosen_names, *names_without;
static uintptr_t program_code, program_start;

static uint64_t mix(uint64_t number) {
  number *= 0x9e3779b97f4a7c15;
  return number ^ number >> 29;
}

static uint64_t hash(const char *text) {
  uint64_t sum = 1;
  while (*text) sum = mix(sum ^ (unsigned char)*text++);
  return sum;
}

/* `libx.so` and `libx.so.1` are libx.so.1.2. */
static int is_called(const char *file, const char *name, size_t length) {
  return !strncmp(file, name, length) && (!file[length] || file[length] == '.');
}

static int begins(const char *file, const char *name, size_t length) { return !strncmp(file, name, length); }

static int is_listed(const char *list, const char *file, int (*fits)(const char *, const char *, size_t)) {
  while (list && *list) {
    size_t length = strcspn(list, ":");
    if (length && fits(file, list, length)) return 1;
    list += length + (list[length] != 0);
  }
  return 0;
}

static int is_chosen(const char *file, int is_program) {
  if (!chosen_names) return is_program;
  if (!strcmp(chosen_names, "all")) return is_program || !is_listed(names_without, file, begins);
  return is_listed(chosen_names, file, is_called);
}

void ffuzz_qemu_choose(const char *names, const char *without, const void *program) {
  chosen_names = names && *names ? names : NULL;
  names_without = without;
  program_code = (uintptr_t)program;
  mapping_count = 0;
}

/* Paths are kept: the mappings are read again and again. */
static const char *keep(const char *path) {
  static struct kept {
    struct kept *next;
    char path[];
  } *first;
  for (struct kept *one = first; one; one = one->next)
    if (!strcmp(one->path, path)) return one->path;
  struct kept *new = malloc(sizeof *new + strlen(path) + 1);
  if (!new) abort();
  strcpy(new->path, path);
  new->next = first;
  first = new;
  return new->path;
}

static void add(const struct mapping *new) {
  static size_t room;
  if (mapping_count == room) {
    room = room ? 2 * room : 64;
    struct mapping *larger = realloc(mappings, room * sizeof *mappings);
    if (!larger) abort();
    mappings = larger;
  }
  mappings[mapping_count++] = *new;
}

static void read_mappings(void) {
  char line[4352], path[4097], program[4097] = "";
  FILE *file = fopen("/proc/self/maps", "re");
  if (!file) return;
  struct mapping m = {0};
  while (fgets(line, sizeof line, file))
    if (sscanf(line, "%lx-%lx %*s %lx %*s %*s %4096[^\n]", &m.start, &m.end, &m.offset, path) == 4 &&
        program_code - m.start < m.end - m.start)
      strcpy(program, path);
  rewind(file);
  mapping_count = 0;
  while (fgets(line, sizeof line, file)) {
    int fields = sscanf(line, "%lx-%lx %*s %lx %*s %*s %4096[^\n]", &m.start, &m.end, &m.offset, path);
    if (fields != 4 || *path != '/') continue;
    const char *name = strrchr(path, '/') + 1;
    m.name = hash(name);
    m.path = keep(path);
    int is_program = !strcmp(path, program);
    m.chosen = is_chosen(name, is_program);
    if (is_program && !m.offset) program_start = m.start;
    add(&m);
  }
  fclose(file);
}

static const struct mapping *find(uintptr_t host) {
  size_t low = 0, high = mapping_count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    const struct mapping *m = &mappings[middle];
    if (host < m->start)
      high = middle;
    else if (host >= m->end)
      low = middle + 1;
    else
      return m;
  }
  return NULL;
}

static uint64_t number(const unsigned char *at, size_t size, int is_big) {
  uint64_t value = 0;
  for (size_t i = 0; i < size; i++) value = value << 8 | at[is_big ? i : size - 1 - i];
  return value;
}

/* The header of the file is the beginning of its memory. */
uint64_t ffuzz_qemu_entry(uintptr_t base) {
  read_mappings();
  const unsigned char *header = (const unsigned char *)program_start;
  if (!header || memcmp(header, "\177ELF", 4)) return 0;
  int is_wide = header[4] == 2, is_big = header[5] == 2, is_relative = number(header + 16, 2, is_big) == 3;
  uint64_t entry = number(header + 24, is_wide ? 8 : 4, is_big);
  return is_relative ? program_start - base + entry : entry;
}

int ffuzz_qemu_is_file(uintptr_t host) { return find(host) != NULL; }

static const struct mapping *mapping_of(const void *host) {
  const struct mapping *m = find((uintptr_t)host);
  if (m) return m;
  read_mappings();
  return find((uintptr_t)host);
}

const char *ffuzz_qemu_file(const void *host, uint64_t *offset) {
  const struct mapping *m = mapping_of(host);
  if (!m) return NULL;
  *offset = (uintptr_t)host - m->start + m->offset;
  return m->path;
}

static uint32_t place(uint64_t module, uint64_t offset) {
  uint32_t number = (uint32_t)mix(module ^ mix(offset));
  return number ? number : 1;
}

uint32_t ffuzz_qemu_location(const void *host, uint64_t address, int is_before_input) {
  static int is_packed;
  const struct mapping *m = mapping_of(host);
  if (m) return m->chosen ? place(m->name, (uintptr_t)host - m->start + m->offset) : 0;
  int may_be_program = !chosen_names || !strcmp(chosen_names, "all");
  if (is_before_input && may_be_program) is_packed = 1;
  return is_packed ? place(0, address) : 0;
}
