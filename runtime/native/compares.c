/* See compares.h. The handler uses no code that has a breakpoint: the language runtime, whose functions the log calls
 * (memcpy, strnlen), has none. */
#define _GNU_SOURCE
#include "native/compares.h"

#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "log.h"
#include "memory.h"

/* As often as the log takes all occurrences of a site. */
#define MOST_HITS 16u

struct compares {
  uint64_t base, start, end; /* from the first site to the last */
  const struct ffuzz_code_site *sites;
  uint8_t *hits;
  uint32_t count, first;
};

static struct compares files[MOST_FILES];
static uint32_t file_count;

HIDDEN void ffuzz_compares_add(uint64_t base, const struct ffuzz_code_site *sites, uint32_t count, uint32_t first) {
  if (!count || file_count == MOST_FILES) return;
  size_t bytes = count * sizeof *sites;
  struct ffuzz_code_site *copy = ffuzz_pages(bytes);
  memcpy(copy, sites, bytes);
  mprotect(copy, bytes, PROT_READ);
  uint64_t start = base + sites[0].at, end = base + sites[count - 1].at + 1;
  files[file_count++] = (struct compares){base, start, end, copy, ffuzz_pages(count), count, first};
}

HIDDEN int ffuzz_compares_are_there(void) { return file_count != 0; }

static void put(uint8_t *at, uint8_t byte) { __atomic_store_n(at, byte, __ATOMIC_RELAXED); }

HIDDEN void ffuzz_compares_set_all(void) {
  for (uint32_t f = 0; f < file_count; f++)
    for (uint32_t i = 0; i < files[f].count; i++) {
      uint8_t *at = (uint8_t *)(files[f].base + files[f].sites[i].at);
      if (*at == files[f].sites[i].byte) put(at, BREAKPOINT);
    }
}

/* Number of the site in its file; -1 if there is none. */
static int64_t find(const struct compares *file, uint64_t address) {
  uint64_t wanted = address - file->base;
  uint32_t low = 0, high = file->count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (file->sites[middle].at < wanted)
      low = middle + 1;
    else
      high = middle;
  }
  return low < file->count && file->sites[low].at == wanted ? (int64_t)low : -1;
}

static const struct compares *file_at(uint64_t address) {
  for (uint32_t i = 0; i < file_count; i++)
    if (address >= files[i].start && address < files[i].end) return &files[i];
  return NULL;
}

/* Of registers, in the order of their encoding. */
static const uint8_t places[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                 REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

static uint64_t value_of_register(const ucontext_t *at, uint8_t number) {
  return number < sizeof places ? (uint64_t)at->uc_mcontext.gregs[places[number]] : 0;
}

/* A result of 4 bytes clears the upper half. */
static void put_result(ucontext_t *at, const struct ffuzz_site_side *to, unsigned bytes, uint64_t value) {
  uint64_t old = value_of_register(at, to->base), mask = bytes == 1 ? 0xff : 0xffff;
  unsigned shift = to->form == FFUZZ_SIDE_HIGH_REGISTER ? 8 : 0;
  if (bytes < 4) value = (old & ~(mask << shift)) | value << shift;
  at->uc_mcontext.gregs[places[to->base & 15]] = (greg_t)value;
}

static uint64_t load(uint64_t address, unsigned bytes) {
  const void *at = (const void *)address;
  switch (bytes) {
    case 1: return *(const uint8_t *)at;
    case 2: return *(const uint16_t *)at;
    case 4: return *(const uint32_t *)at;
    default: return *(const uint64_t *)at;
  }
}

/* 8 bytes at most. */
static uint64_t value_of_vector(const ucontext_t *at, uint8_t number) {
  const uint32_t *element = at->uc_mcontext.fpregs->_xmm[number & 15].element;
  return element[0] | (uint64_t)element[1] << 32;
}

static uint64_t operand(const struct compares *file, const struct ffuzz_code_site *site, int side, const ucontext_t *at) {
  const struct ffuzz_site_side *s = &site->sides[side];
  unsigned bytes = site->bytes & ~FFUZZ_SITE_XOR;
  uint64_t value = (uint64_t)site->values[side];
  switch (s->form) {
    case FFUZZ_SIDE_REGISTER: return value_of_register(at, s->base);
    case FFUZZ_SIDE_HIGH_REGISTER: return value_of_register(at, s->base) >> 8;
    case FFUZZ_SIDE_CONSTANT: return value;
    case FFUZZ_SIDE_ABSOLUTE: return load(file->base + value, bytes);
    case FFUZZ_SIDE_VECTOR: return value_of_vector(at, s->base);
  }
  return load(value + value_of_register(at, s->base) + value_of_register(at, s->index) * s->scale, bytes);
}

/* Intel's manual, volume 1, section 3.4.3.1, for a subtraction; with 0 as the second operand also for the result of a
 * logical instruction. */
static greg_t flags_of(greg_t flags, uint64_t a, uint64_t b, unsigned bits) {
  uint64_t result = a - b, top = (uint64_t)1 << (bits - 1), mask = top | (top - 1);
  flags &= ~(greg_t)0x8d5;
  if (a < b) flags |= 0x1;
  if (!__builtin_parity((unsigned)result & 0xff)) flags |= 0x4;
  if ((a ^ b ^ result) & 0x10) flags |= 0x10;
  if (!(result & mask)) flags |= 0x40;
  if (result & top) flags |= 0x80;
  if ((a ^ b) & (a ^ result) & top) flags |= 0x800;
  return flags;
}

static double number_of(uint64_t bits, unsigned bytes) {
  float small;
  double number;
  memcpy(&small, &bits, sizeof small);
  memcpy(&number, &bits, sizeof number);
  return bytes == 4 ? (double)small : number;
}

/* Intel's manual, volume 2, UCOMISD: zero, parity and carry are set if an operand is no number. */
static greg_t flags_of_numbers(greg_t flags, double a, double b) {
  flags &= ~(greg_t)0x8d5;
  if (a != a || b != b) return flags | 0x45;
  return flags | (a == b ? 0x40 : a < b);
}

/* Where a process has its memory. */
static int is_pointer(uint64_t value) { return value >> 40 && !(value >> 47); }

static void compare(const struct compares *file, const struct ffuzz_code_site *site, uint32_t number, ucontext_t *at) {
  greg_t *registers = at->uc_mcontext.gregs;
  unsigned bytes = site->bytes & ~FFUZZ_SITE_XOR, bits = bytes * 8u;
  uint64_t mask = bits < 64 ? ((uint64_t)1 << bits) - 1 : ~(uint64_t)0;
  uint64_t a = operand(file, site, 0, at) & mask, b = operand(file, site, 1, at) & mask;
  uint32_t constant = site->sides[1].form == FFUZZ_SIDE_CONSTANT ? FFUZZ_LOG_CONSTANT_B : 0;
  if (!is_pointer(a) || !is_pointer(b))
    __ffuzz_log_values(number, bytes | (uint32_t)site->kind << 8 | constant << 16, a, b);
  if (site->bytes & FFUZZ_SITE_XOR) {
    put_result(at, &site->sides[0], bytes, a ^ b);
    registers[REG_EFL] = flags_of(registers[REG_EFL], a ^ b, 0, bits);
  } else if (site->kind == FFUZZ_LOG_FLOAT) {
    registers[REG_EFL] = flags_of_numbers(registers[REG_EFL], number_of(a, bytes), number_of(b, bytes));
  } else {
    registers[REG_EFL] = flags_of(registers[REG_EFL], a, b, bits);
  }
  registers[REG_RIP] += site->length - 1;
}

/* Arguments are in rdi, rsi, rdx and rcx. */
static void log_call(const struct ffuzz_code_site *site, uint32_t number, const ucontext_t *at) {
  const void *a = (const void *)value_of_register(at, 7), *b = (const void *)value_of_register(at, 6);
  uint64_t third = value_of_register(at, 2), fourth = value_of_register(at, 1), whole = ~(uint64_t)0;
  uint32_t how = (uint32_t)site->kind << 8 | (site->bytes & FFUZZ_IGNORES_CASE ? FFUZZ_LOG_IGNORES_CASE << 16 : 0);
  switch (site->bytes & ~FFUZZ_IGNORES_CASE) {
    case FFUZZ_COMPARES_MEMORY: __ffuzz_log_memory(number, how, a, b, third); break;
    case FFUZZ_COMPARES_TEXT: __ffuzz_log_text(number, how, a, b, whole); break;
    case FFUZZ_COMPARES_TEXT_OF_LENGTH: __ffuzz_log_text(number, how, a, b, third); break;
    case FFUZZ_COMPARES_SEARCH: __ffuzz_log_search(number, how, a, whole, b, whole); break;
    case FFUZZ_COMPARES_SEARCH_IN_LENGTH: __ffuzz_log_search(number, how, a, (uint64_t)b, (const char *)third, whole); break;
    case FFUZZ_COMPARES_SEARCH_OF_LENGTHS:
      __ffuzz_log_search(number, how, a, (uint64_t)b, (const char *)third, fourth);
      break;
    case FFUZZ_COMPARES_STRING_TEXT: __ffuzz_log_string(number, how, a, b, 0); break;
    case FFUZZ_COMPARES_STRINGS: __ffuzz_log_string(number, how, a, b, 1); break;
  }
}

/* The call is made by the handler's return. */
static void call(const struct compares *file, const struct ffuzz_code_site *site, uint32_t number, ucontext_t *at) {
  greg_t *registers = at->uc_mcontext.gregs;
  uint64_t target = file->base + (uint64_t)site->values[0];
  log_call(site, number, at);
  if (site->sides[0].form == FFUZZ_SIDE_ABSOLUTE) target = load(target, 8);
  if (!site->values[1]) {
    registers[REG_RSP] -= 8;
    *(uint64_t *)registers[REG_RSP] = (uint64_t)registers[REG_RIP] - 1 + site->length;
  }
  registers[REG_RIP] = (greg_t)target;
}

HIDDEN int ffuzz_compare_hit(void *context) {
  ucontext_t *at = context;
  uint64_t address = (uint64_t)at->uc_mcontext.gregs[REG_RIP] - 1;
  const struct compares *file = file_at(address);
  int64_t i = file ? find(file, address) : -1;
  if (i < 0) return 0;
  const struct ffuzz_code_site *site = &file->sites[i];
  if (++file->hits[i] >= MOST_HITS) put((uint8_t *)address, site->byte);
  uint32_t number = file->first + (uint32_t)i;
  if (site->kind < FFUZZ_LOG_MEMORY)
    compare(file, site, number, at);
  else
    call(file, site, number, at);
  return 1;
}
