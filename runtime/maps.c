/* Two lists that domains keep with the runtime: variables that hold the address of a map, for
 * updates without a call, and functions to be called when a run begins.
 *
 * Each module (the program, a shared library) has variables of its own for the same domain, or, if
 * the dynamic linker sees to it, all have one. Both lists are changed by constructors and
 * destructors only. */
#include "maps.h"
#include "memory.h"

struct keeper {
  uint32_t **variable;
  uint32_t *unseen; /* what the variable held at first: memory of its own that nobody reads */
  dsf_t id;
  uint32_t users;
};

static struct keeper *keepers;
static uint32_t keeper_count;
static void (**hooks)(void);
static uint32_t hook_count;

HIDDEN void ffuzz_maps_place(void) {
  for (uint32_t i = 0; i < keeper_count; i++)
    if (keepers[i].id >= 0) *keepers[i].variable = __fuzzfactory_dsf_map + ffuzz_domains[keepers[i].id].start;
}

static struct keeper *keeper_of(uint32_t **variable) {
  for (uint32_t i = 0; i < keeper_count; i++)
    if (keepers[i].variable == variable) return &keepers[i];
  return NULL;
}

/* A domain that came too late has no map: its updates stay in the module's own memory. */
void __ffuzz_keep_map(dsf_t id, uint32_t **variable) {
  struct keeper *known = keeper_of(variable);
  if (known) {
    known->users++;
    return;
  }
  size_t used = keeper_count * sizeof *keepers;
  keepers = ffuzz_grow(keepers, used, used + sizeof *keepers);
  keepers[keeper_count++] = (struct keeper){variable, *variable, id, 1};
  ffuzz_maps_place();
}

/* For a library that is unloaded. */
void __ffuzz_drop_map(uint32_t **variable) {
  struct keeper *known = keeper_of(variable);
  if (known && --known->users == 0) *known = keepers[--keeper_count];
}

/* What the domain has counted in this run is gone, and the rest of the run is not counted. */
void __ffuzz_discard_map(dsf_t id) {
  if (id < 0) return;
  for (uint32_t i = 0; i < keeper_count; i++)
    if (keepers[i].id == id) *keepers[i].variable = keepers[i].unseen;
  ffuzz_domain_clear(id);
  ffuzz_domains[id].discarded = 1;
}

void __ffuzz_each_run(void (*hook)(void)) {
  size_t used = hook_count * sizeof *hooks;
  hooks = ffuzz_grow(hooks, used, used + sizeof *hooks);
  hooks[hook_count++] = hook;
}

void __ffuzz_not_each_run(void (*hook)(void)) {
  for (uint32_t i = 0; i < hook_count; i++)
    if (hooks[i] == hook) hooks[i--] = hooks[--hook_count];
}

HIDDEN void ffuzz_hooks_call(void) {
  ffuzz_maps_place();
  for (uint32_t i = 0; i < ffuzz_domain_count; i++) ffuzz_domains[i].discarded = 0;
  for (uint32_t i = 0; i < hook_count; i++) hooks[i]();
}
