/* See trail.h. `src/exec/emulator.rs` reads it. */
#define _GNU_SOURCE
#include "qemu/trail.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "qemu/api.h"
#include "qemu/modules.h"

#define STEPS 64
#define FILES 16
#define LONGEST 1024

struct step {
  uint64_t file, offset; /* place in the table; in the file */
};

static struct {
  uint64_t count;
  struct step steps[STEPS]; /* a ring */
  char files[FILES][LONGEST];
} *trail;

int ffuzz_qemu_trail_start(void) {
  const char *descriptor = getenv("FFUZZ_QEMU_TRAIL");
  if (!descriptor) return 0;
  void *shared = mmap(NULL, sizeof *trail, PROT_READ | PROT_WRITE, MAP_SHARED, atoi(descriptor), 0);
  if (shared != MAP_FAILED) trail = shared;
  return trail != NULL;
}

static void on_block(unsigned cpu, void *data) {
  (void)cpu;
  uint64_t count = trail->count;
  trail->steps[count % STEPS] = *(const struct step *)data;
  trail->count = count + 1;
}

static int number_of(const char *path) {
  for (int i = 0; i < FILES; i++) {
    if (!trail->files[i][0] && strlen(path) < LONGEST) strcpy(trail->files[i], path);
    if (!strcmp(trail->files[i], path)) return i;
  }
  return -1;
}

void ffuzz_qemu_trail_translated(struct qemu_plugin_tb *block, const void *host) {
  uint64_t offset;
  const char *path = ffuzz_qemu_file(host, &offset);
  int number = path ? number_of(path) : -1;
  struct step *step = number < 0 ? NULL : malloc(sizeof *step);
  if (!step) return;
  *step = (struct step){.file = (uint64_t)number, .offset = offset};
  qemu_plugin_register_vcpu_tb_exec_cb(block, on_block, 0, step);
}
