/* See callers.h. A file calls functions of other files through slots, into which the loader has put their addresses;
 * the slots of the chosen files get ours instead. So nothing is in the way of other files, and of a process that counts
 * no calls. */
#define _GNU_SOURCE
#include "native/callers.h"

#include <dlfcn.h>
#include <string.h>
#include <sys/mman.h>

#include "native/table.h"

struct file {
  uint64_t base;
  uint64_t start, end;             /* of its code */
  uint64_t sealed_from, sealed_to; /* pages that the loader has made read-only */
  const ElfW(Dyn) *dynamic;
  uint32_t identity;
};

static struct file files[MOST_FILES];
static uint32_t file_count;

HIDDEN void ffuzz_callers_add(const struct dl_phdr_info *info, uint32_t identity) {
  if (file_count == MOST_FILES) return;
  struct file f = {.base = info->dlpi_addr, .start = UINT64_MAX, .identity = identity};
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *p = &info->dlpi_phdr[i];
    uint64_t start = f.base + p->p_vaddr, end = start + p->p_memsz;
    if (p->p_type == PT_DYNAMIC) f.dynamic = (const void *)start;
    if (p->p_type == PT_GNU_RELRO) {
      f.sealed_from = start & ~(uint64_t)(FFUZZ_PAGE - 1);
      f.sealed_to = end & ~(uint64_t)(FFUZZ_PAGE - 1);
    }
    if (p->p_type != PT_LOAD || !(p->p_flags & PF_X)) continue;
    if (start < f.start) f.start = start;
    if (end > f.end) f.end = end;
  }
  files[file_count++] = f;
}

static const void *table_at(const struct file *f, uint64_t pointer) {
  return (const void *)(pointer < f->base ? f->base + pointer : pointer); /* the loader may have added the base */
}

/* What the loader found for the name, or will find when the slot is used first. */
static int leads_to(const struct file *f, uint64_t value, const ElfW(Sym) *symbol, const char *name, const void *real) {
  if (value == (uint64_t)real) return 1;
  int is_unbound = symbol->st_shndx == SHN_UNDEF && value >= f->start && value < f->end;
  return is_unbound && dlsym(RTLD_DEFAULT, name) == real;
}

static void redirect_slot(const struct file *f, const ElfW(Rela) *slot, const ElfW(Sym) *symbol, const char *name,
                          const struct replacement *r) {
  uint64_t *at = (uint64_t *)(f->base + slot->r_offset);
  void *real = dlsym(RTLD_NEXT, name);
  if (!real || !leads_to(f, *at, symbol, name, real)) return;
  if (r->real) memcpy(r->real, &real, sizeof real);
  *at = (uint64_t)r->by;
}

struct symbols {
  const ElfW(Sym) *table;
  const char *names;
};

static void redirect_slots(const struct file *f, const ElfW(Rela) *slots, size_t slot_count, struct symbols symbols,
                           const struct replacement *list, size_t count) {
  for (size_t i = 0; i < slot_count; i++) {
    uint64_t type = ELF64_R_TYPE(slots[i].r_info);
    int is_copy = type == R_X86_64_COPY; /* of a library's variable, whose name is not that of what it holds */
    if (!is_copy && type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT && (type != R_X86_64_64 || slots[i].r_addend)) continue;
    const ElfW(Sym) *symbol = &symbols.table[ELF64_R_SYM(slots[i].r_info)];
    const char *name = symbols.names + symbol->st_name;
    for (size_t r = 0; r < count; r++)
      if (is_copy ? symbol->st_size == sizeof(void *) : !strcmp(name, list[r].name))
        redirect_slot(f, &slots[i], symbol, list[r].name, &list[r]);
  }
}

static void redirect_file(const struct file *f, const struct replacement *list, size_t count) {
  const ElfW(Rela) *calls = NULL, *others = NULL;
  size_t call_bytes = 0, other_bytes = 0;
  struct symbols symbols = {NULL, NULL};
  for (const ElfW(Dyn) *d = f->dynamic; d && d->d_tag != DT_NULL; d++) {
    switch (d->d_tag) {
      case DT_SYMTAB: symbols.table = table_at(f, d->d_un.d_ptr); break;
      case DT_STRTAB: symbols.names = table_at(f, d->d_un.d_ptr); break;
      case DT_JMPREL: calls = table_at(f, d->d_un.d_ptr); break;
      case DT_PLTRELSZ: call_bytes = d->d_un.d_val; break;
      case DT_RELA: others = table_at(f, d->d_un.d_ptr); break;
      case DT_RELASZ: other_bytes = d->d_un.d_val; break;
    }
  }
  if (!symbols.table || !symbols.names) return;
  size_t sealed = f->sealed_to > f->sealed_from ? f->sealed_to - f->sealed_from : 0;
  if (sealed && mprotect((void *)f->sealed_from, sealed, PROT_READ | PROT_WRITE)) return;
  if (calls) redirect_slots(f, calls, call_bytes / sizeof *calls, symbols, list, count);
  if (others) redirect_slots(f, others, other_bytes / sizeof *others, symbols, list, count);
  if (sealed) mprotect((void *)f->sealed_from, sealed, PROT_READ);
}

HIDDEN void ffuzz_callers_redirect(const struct replacement *list, size_t count) {
  for (uint32_t i = 0; i < file_count; i++) redirect_file(&files[i], list, count);
}

/* src/inspect/counted.rs calculates the same. */
HIDDEN uint32_t ffuzz_place_key(uint32_t identity, uint32_t address) {
  uint32_t key = identity + address * 0x9e3779b1u;
  key = (key ^ key >> 16) * 0x85ebca6bu;
  key = (key ^ key >> 13) * 0xc2b2ae35u;
  key ^= key >> 16;
  return key & 0xffff ? key : 1;
}

HIDDEN uint32_t ffuzz_caller_key(const void *return_address) {
  uint64_t at = (uint64_t)return_address;
  for (uint32_t i = 0; i < file_count; i++)
    if (at >= files[i].start && at < files[i].end) return ffuzz_place_key(files[i].identity, (uint32_t)(at - files[i].base));
  return 0;
}
