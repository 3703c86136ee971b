/* What the prologue has made, and constructors before it: files that are open, and mappings. The rules for this code
 * are in state.h. */
#define _GNU_SOURCE
#include "snapshot/made.h"

#if FFUZZ_HAS_SNAPSHOTS
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "process.h"

HIDDEN int ffuzz_identify(long folder, const char *path, struct file_id *id) {
  struct statx file;
  long error = CALL(statx, folder, path, AT_EMPTY_PATH, STATX_TYPE | STATX_INO, &file);
  if (!error) *id = (struct file_id){file.stx_ino, file.stx_dev_major, file.stx_dev_minor, file.stx_mode};
  return !error;
}

HIDDEN int ffuzz_is_input(const struct file_id *id) {
  const struct file_id *input = &ffuzz_saved->input;
  return id->inode == input->inode && id->major == input->major && id->minor == input->minor;
}

HIDDEN struct opened *ffuzz_opened_as(long number) {
  for (uint32_t i = 0; i < ffuzz_saved->opened_count; i++)
    if (ffuzz_saved->opened[i].number == number) return &ffuzz_saved->opened[i];
  return NULL;
}

/* By fork each run has a descriptor of its own: constructors, too, open files in each child. */
static void add_of_constructors(void) {
  struct saved *saved = ffuzz_saved;
  struct file_id id;
  for (uint32_t i = 0; i < saved->descriptor_count; i++) {
    int number = saved->descriptors[i];
    int is_inherited = number >= 64 || ffuzz_inherited >> number & 1;
    if (is_inherited || ffuzz_opened_as(number) || saved->opened_count == MOST_OPENED) continue;
    if (!ffuzz_identify(number, "", &id) || ffuzz_is_input(&id) || !(S_ISREG(id.mode) || S_ISDIR(id.mode))) continue;
    saved->opened[saved->opened_count++] = (struct opened){number, 0, 1, 0};
  }
}

HIDDEN void ffuzz_prologue_ends(void) {
  add_of_constructors();
  for (uint32_t i = 0; i < ffuzz_saved->opened_count; i++) {
    struct opened *opened = &ffuzz_saved->opened[i];
    opened->offset = (uint64_t)CALL(lseek, opened->number, 0, SEEK_CUR);
  }
}

HIDDEN void ffuzz_refuse_opened(long number) {
  const struct opened *opened = ffuzz_opened_as((int)number);
  if (!opened) return;
  ffuzz_give_up(ffuzz_saved->prologue ? FFUZZ_WHY_PROLOGUE : FFUZZ_WHY_CALL, opened->calls);
}

HIDDEN void ffuzz_refuse_mapped(uint64_t start, uint64_t end) {
  for (uint32_t i = 0; i < ffuzz_saved->mapped_count; i++) {
    const struct mapped *mapped = &ffuzz_saved->mapped[i];
    if (start < mapped->end && end > mapped->start) ffuzz_give_up(FFUZZ_WHY_PROLOGUE, mapped->calls);
  }
}
#endif
