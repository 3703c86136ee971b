/* System calls of a run that are trapped: what can be undone is noted and then done, for all else the child
 * gives up. A call that is not known here is one of these, so a new one is no danger.
 *
 * The rules for this code are in state.h; it runs in a signal handler, in the midst of the program. */
#define _GNU_SOURCE
#include "snapshot/calls.h"

#if FFUZZ_HAS_SNAPSHOTS
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>

#include "runs.h"
#include "snapshot/changes.h"
#include "snapshot/cycle.h"
#include "snapshot/made.h"
#include "snapshot/mappings.h"

/* Bytes of memory from before the run that a run may empty at once. */
#define MOST_DISCARDED (1u << 30)
/* More than a user has. */
#define MOST_GROUPS 64
#define CODE_SECCOMP 1 /* SYS_SECCOMP, whose name would be that of a call */

static long noted(const struct call *c, uint32_t what) {
  ffuzz_changes->what |= what;
  return perform(c);
}

static long refused(const struct call *c) { ffuzz_give_up(FFUZZ_WHY_CALL, c->number); }

/* Memory. */

static uint64_t end_of(uint64_t start, uint64_t length) {
  uint64_t rest = ~(uint64_t)0 - start;
  return start + (length < rest ? round_up(length) : rest);
}

/* Is it there since before the run? Reserved addresses count only if `strictly`. */
static int is_known(uint64_t start, uint64_t length, int strictly) {
  uint64_t end = end_of(start, length);
  if (ffuzz_is_own(start, end)) return 1;
  for (const struct mapping *m = ffuzz_mapping_behind(start); m && m->start < end; m = ffuzz_mapping_behind(m->end))
    if (strictly || !m->is_reserved) return 1;
  return 0;
}

static void refuse_known(uint64_t start, uint64_t length) {
  if (!is_known(start, length, 1)) return;
  ffuzz_refuse_mapped(start, end_of(start, length));
  ffuzz_give_up(FFUZZ_WHY_MAPPING, 0);
}

/* Where a page has a copy it has to stay, because a scan reports what is there; all other are given back. */
static void discard(const struct mapping *m, uint64_t start, uint64_t end) {
  const uint32_t *copy_of = ffuzz_saved->copy_of + m->first - m->start / FFUZZ_PAGE;
  for (uint64_t at = start, next; at < end; at = next) {
    int has_copy = copy_of[at / FFUZZ_PAGE] != 0;
    for (next = at + FFUZZ_PAGE; next < end && (copy_of[next / FFUZZ_PAGE] != 0) == has_copy;) next += FFUZZ_PAGE;
    if (has_copy)
      zero_bytes((void *)at, next - at);
    else
      CALL(madvise, at, next - at, MADV_DONTNEED);
  }
}

/* Is all of it there since before the run, and ours to put back? */
static int is_put_back(uint64_t start, uint64_t end) {
  for (uint64_t at = start; at < end;) {
    const struct mapping *m = ffuzz_mapping_behind(at);
    if (!m || at < m->start || !m->is_put_back || m->is_file) return 0;
    at = m->end;
  }
  return 1;
}

/* Whether the run has changed the access rights of a part; `is_gone`: whether it has unmapped one. */
static int has_other_rights(uint64_t start, uint64_t end, int is_gone) {
  for (uint32_t i = 0; i < ffuzz_changes->other_rights_count; i++) {
    const struct other_rights *r = &ffuzz_changes->other_rights[i];
    if (start < r->end && end > r->start && r->is_gone >= is_gone) return 1;
  }
  return 0;
}

/* The end of the first part of a range that belongs to one mapping from before the run, or to none: NULL. */
static uint64_t part_end(uint64_t start, uint64_t end, const struct mapping **of) {
  const struct mapping *m = ffuzz_mapping_behind(start);
  uint64_t next = !m ? end : m->start > start ? m->start : m->end;
  *of = m && m->start <= start ? m : NULL;
  return next < end ? next : end;
}

/* Empties memory from before the run. */
static int is_discarded(uint64_t start, uint64_t length) {
  uint64_t end = end_of(start, length);
  if (has_other_rights(start, end, 0)) return 0;
  if (end - start > MOST_DISCARDED || start % FFUZZ_PAGE || !is_put_back(start, end)) return 0;
  for (uint64_t at = start; at < end;) {
    const struct mapping *m = ffuzz_mapping_behind(at);
    uint64_t next = m->end < end ? m->end : end;
    discard(m, at, next);
    at = next;
  }
  return 1;
}

/* Over reserved addresses, as allocators do it, it is undone by reserving them again. Over other memory
 * from before the run (sanitizers do that with their shadow) it is a way to empty it. */
static long maps(const struct call *c) {
  uint64_t start = (uint64_t)c->a[0], length = (uint64_t)c->a[1];
  int is_fixed = (c->a[3] & MAP_FIXED) != 0, was_reserved = is_fixed && is_known(start, length, 1);
  if (c->a[3] & MAP_GROWSDOWN) return refused(c); /* how far it grows nobody says */
  if (is_fixed && is_known(start, length, 0)) {
    int is_plain = c->a[2] == (PROT_READ | PROT_WRITE) && c->a[3] & MAP_ANONYMOUS && c->a[3] & MAP_PRIVATE;
    if (is_plain && is_discarded(start, length)) return (long)start;
    refuse_known(start, length);
  }
  long at = perform(c);
  if (at < 0 && at > -4096) return at;
  ffuzz_note_mapping((uint64_t)at, length, was_reserved);
  return at;
}

/* Takes all access to memory from before the run away. Its pages stay, so that nothing has to fill them again, and so
 * does its place. */
static void hide(const struct mapping *m, uint64_t start, uint64_t end) {
  if (!m->is_reserved) {
    ffuzz_note_rights(start, end, 1);
    CALL(mprotect, start, end - start, PROT_NONE);
    return;
  }
  CALL(mmap, start, end - start, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

static long unmaps(const struct call *c) {
  uint64_t start = (uint64_t)c->a[0], length = (uint64_t)c->a[1], end = end_of(start, length);
  if (start % FFUZZ_PAGE || !length) return perform(c);
  if (ffuzz_is_own(start, end)) ffuzz_give_up(FFUZZ_WHY_MAPPING, 0);
  const struct mapping *m;
  for (uint64_t at = start, next; at < end; at = next) {
    next = part_end(at, end, &m);
    if (m) {
      hide(m, at, next);
      continue;
    }
    long error = CALL(munmap, at, next - at);
    if (error) return error;
    ffuzz_forget_mapping(at, next - at);
  }
  return 0;
}

/* Whether the run may have that access to this memory: what is not put back must not be written to. */
static int can_have_rights(const struct mapping *m, long rights) {
  return m->is_put_back || m->is_reserved || !(rights & PROT_WRITE);
}

/* Reserved addresses become memory, which allocators do in place of mapping it. */
static long protects(const struct call *c) {
  uint64_t start = (uint64_t)c->a[0], end = end_of(start, (uint64_t)c->a[1]);
  if (start % FFUZZ_PAGE || !is_known(start, (uint64_t)c->a[1], 1)) return perform(c);
  int is_plain = !(c->a[2] & ~(PROT_READ | PROT_WRITE | PROT_EXEC)) && !ffuzz_is_own(start, end);
  if (!is_plain || has_other_rights(start, end, 1)) refuse_known(start, end - start);
  const struct mapping *m;
  for (uint64_t at = start, next; at < end; at = next) {
    next = part_end(at, end, &m);
    if (!m) continue;
    if (!can_have_rights(m, c->a[2])) refuse_known(start, end - start);
    if (m->is_reserved)
      ffuzz_note_mapping(at, next - at, 1);
    else
      ffuzz_note_rights(at, next, 0);
  }
  return perform(c);
}

/* Memory from before the run stays where it is, hidden; the run gets a copy. */
static long moves_known(const struct call *c) {
  uint64_t old = (uint64_t)c->a[0], old_length = round_up((uint64_t)c->a[1]), length = round_up((uint64_t)c->a[2]);
  if (old % FFUZZ_PAGE || !old_length || !length || c->a[3] & MREMAP_FIXED) return refused(c);
  if (!is_put_back(old, old + old_length) || has_other_rights(old, old + old_length, 0)) return refused(c);
  const struct mapping *m = ffuzz_mapping_behind(old);
  if (old + old_length > m->end) return refused(c);
  if (length <= old_length) {
    if (length < old_length) hide(m, old + length, old + old_length);
    return (long)old;
  }
  if (!(c->a[3] & MREMAP_MAYMOVE)) return -ENOMEM;
  long at = CALL(mmap, NULL, length, m->rights, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at < 0 && at > -4096) return at;
  ffuzz_note_mapping((uint64_t)at, length, 0);
  copy_bytes((void *)at, (void *)old, old_length);
  hide(m, old, old + old_length);
  return at;
}

static long moves(const struct call *c) {
  uint64_t old = (uint64_t)c->a[0], old_length = (uint64_t)c->a[1], length = (uint64_t)c->a[2];
  if (c->a[3] & ~(MREMAP_MAYMOVE | MREMAP_FIXED)) return refused(c);
  if (is_known(old, old_length ? old_length : 1, 1)) return moves_known(c);
  if (c->a[3] & MREMAP_FIXED) refuse_known((uint64_t)c->a[4], length);
  long at = perform(c);
  if (at < 0 && at > -4096) return at;
  ffuzz_forget_mapping(old, old_length);
  ffuzz_note_mapping((uint64_t)at, length, 0);
  return at;
}

static long advises(const struct call *c) {
  uint64_t start = (uint64_t)c->a[0], length = (uint64_t)c->a[1];
  switch (c->a[2]) {
    case MADV_NORMAL:
    case MADV_RANDOM:
    case MADV_SEQUENTIAL:
    case MADV_WILLNEED:
    case MADV_HUGEPAGE:
    case MADV_NOHUGEPAGE:
    case MADV_DONTDUMP:
    case MADV_DODUMP: return perform(c);
  }
  if (!is_known(start, length, 1)) return perform(c);
  if (c->a[2] == MADV_DONTNEED && is_discarded(start, length)) return 0;
  if (c->a[2] == MADV_FREE) return 0; /* the kernel may leave it as it is */
  return refused(c);
}

static long moves_heap_end(const struct call *c) {
  uint64_t end = (uint64_t)c->a[0];
  if (end && end < ffuzz_saved->heap_end)
    ffuzz_give_up(ffuzz_saved->prologue ? FFUZZ_WHY_PROLOGUE : FFUZZ_WHY_MAPPING, 0);
  return noted(c, CHANGED_HEAP_END);
}

/* Descriptors. */

static int is_own_descriptor(long number) { return number >= OWN_FIRST && number <= OWN_LAST; }

static long closes(const struct call *c) {
  if (is_own_descriptor((int)c->a[0])) return -EBADF;
  ffuzz_note_descriptor((int)c->a[0]);
  return perform(c);
}

HIDDEN void ffuzz_close_range(uint64_t first, uint64_t last) {
  if (first < OWN_FIRST) CALL(close_range, first, last < OWN_FIRST ? last : OWN_FIRST - 1, 0);
  if (last > OWN_LAST) CALL(close_range, first > OWN_LAST ? first : OWN_LAST + 1, last, 0);
}

static long closes_range(const struct call *c) {
  uint64_t first = (uint32_t)c->a[0], last = (uint32_t)c->a[1];
  if (c->a[2]) return refused(c);
  if (first > last) return -EINVAL;
  for (uint32_t i = 0; i < ffuzz_saved->descriptor_count; i++) {
    uint64_t known = (uint64_t)ffuzz_saved->descriptors[i];
    if (known >= first && known <= last) ffuzz_note_descriptor((long)known);
  }
  ffuzz_close_range(first, last);
  return 0;
}

static long replaces(const struct call *c) {
  if (is_own_descriptor((int)c->a[1])) return refused(c);
  if (c->a[0] != c->a[1]) ffuzz_note_descriptor((int)c->a[1]);
  return perform(c);
}

/* Of the descriptor, or of what it stands for, which by fork each run opens anew if it was not inherited. */
static long sets_flags(const struct call *c) {
  if (c->a[1] == F_SETFD)
    ffuzz_note_descriptor((int)c->a[0]);
  else
    ffuzz_refuse_opened(c->a[0]);
  return perform(c);
}

static long locks(const struct call *c) {
  ffuzz_refuse_opened(c->a[0]);
  return perform(c);
}

/* Files. */

/* The path has at most `most` bytes. */
static void note_left(const char *path, size_t most) {
  size_t i = 0;
  if (ffuzz_left->count++) return;
  for (; i + 1 < sizeof ffuzz_left->first && i < most && path[i]; i++) ffuzz_left->first[i] = path[i];
  ffuzz_left->first[i] = 0;
}

/* A call that makes, removes or opens for writing what has this path. Devices and the input are as before. The path can
 * be read once the kernel has read it. */
static long leaves(const struct call *c, long folder, long path) {
  struct file_id id;
  int was_there = ffuzz_identify(folder, (const char *)path, &id);
  int is_noted = !was_there || (!ffuzz_is_input(&id) && (S_ISREG(id.mode) || S_ISDIR(id.mode) || S_ISSOCK(id.mode)));
  long result = perform(c);
  int has_failed = result < 0 && result > -4096;
  if (!has_failed && is_noted) note_left((const char *)path, SIZE_MAX);
  return result;
}

static long removes(const struct call *c, long folder, long path) {
  ffuzz_changes->what |= CHANGED_INPUT;
  return leaves(c, folder, path);
}

/* A call that sets the mode, the owner or the length of what has this path: that of the input would stay. */
static long sets_file(const struct call *c, long folder, long path) {
  struct file_id id;
  if (ffuzz_identify(folder, (const char *)path, &id) && ffuzz_is_input(&id)) return refused(c);
  return leaves(c, folder, path);
}

static long binds(const struct call *c) {
  const struct sockaddr_un *address = (const void *)c->a[1];
  long error = perform(c);
  size_t length = (uint32_t)c->a[2], start = offsetof(struct sockaddr_un, sun_path);
  if (error || length <= start || address->sun_family != AF_UNIX) return error;
  /* An abstract name goes with the socket. */
  if (address->sun_path[0]) note_left(address->sun_path, length - start);
  return error;
}

/* Settings of the process. */

static int keeps_identity(const struct call *c) {
  int is_group = c->number == SYS_setgid || c->number == SYS_setregid || c->number == SYS_setresgid;
  uint32_t now[3] = {0};
  if (is_group)
    CALL(getresgid, &now[0], &now[1], &now[2]);
  else
    CALL(getresuid, &now[0], &now[1], &now[2]);
  int is_one = now[0] == now[1] && now[1] == now[2];
  switch (c->number) {
    case SYS_setuid:
    case SYS_setgid: return is_one && (uint32_t)c->a[0] == now[0];
    case SYS_setreuid:
    case SYS_setregid: return is_one && (uint32_t)c->a[0] == now[0] && (uint32_t)c->a[1] == now[0];
  }
  for (int i = 0; i < 3; i++)
    if ((int)c->a[i] != -1 && (uint32_t)c->a[i] != now[i]) return 0;
  return 1;
}

/* Reads the program's memory through the kernel, because its pointer may be bad. */
static int is_read(void *into, uint64_t from, uint64_t bytes) {
  struct iovec ours = {into, bytes}, theirs = {(void *)from, bytes};
  long self = CALL(getpid);
  return CALL(process_vm_readv, self, &ours, 1, &theirs, 1, 0) == (long)bytes;
}

static int keeps_limit(long which, uint64_t limit) {
  uint64_t now[2], wanted[2];
  if (CALL(prlimit64, 0, which, NULL, now)) return 0;
  if (!is_read(wanted, limit, sizeof wanted)) return 0;
  return now[0] == wanted[0] && now[1] == wanted[1];
}

static int keeps_groups(long count, uint64_t groups) {
  uint32_t now[MOST_GROUPS], wanted[MOST_GROUPS];
  if (count < 0 || count > MOST_GROUPS || CALL(getgroups, MOST_GROUPS, now) != count) return 0;
  if (count && !is_read(wanted, groups, (uint64_t)count * sizeof *wanted)) return 0;
  for (long i = 0; i < count; i++)
    if (now[i] != wanted[i]) return 0;
  return 1;
}

HIDDEN int ffuzz_call_changes_nothing(const struct call *c) {
  switch (c->number) {
    case SYS_setuid:
    case SYS_setgid:
    case SYS_setreuid:
    case SYS_setregid:
    case SYS_setresuid:
    case SYS_setresgid: return keeps_identity(c);
    case SYS_setgroups: return keeps_groups(c->a[0], (uint64_t)c->a[1]);
    case SYS_setrlimit: return keeps_limit(c->a[0], (uint64_t)c->a[1]);
    case SYS_prlimit64: return !c->a[2] || (!c->a[0] && keeps_limit(c->a[1], (uint64_t)c->a[2]));
    /* The kernel answers 20 - nice, to tell it from an error. */
    case SYS_setpriority:
      return c->a[0] == PRIO_PROCESS && !c->a[1] && 20 - CALL(getpriority, PRIO_PROCESS, 0) == (int)c->a[2];
  }
  return 0;
}

/* The rest. */

static long handles(const struct call *c) {
  struct kernel_action *old = (void *)c->a[2];
  long number = c->a[0];
  if (number < 1 || number >= SIGNALS) return perform(c);
  if (number == SIGSYS && c->a[1]) ffuzz_give_up(FFUZZ_WHY_SIGNAL, SIGSYS);
  if (c->a[1]) ffuzz_note_signal(number);
  long error = perform(c);
  if (!error && number == SIGSYS && old) zero_bytes(old, sizeof *old);
  return error;
}

/* To itself; for others it would be the signal of many runs. There is one thread, of the process's number. */
static long sends(const struct call *c) { return c->a[0] == CALL(getpid) ? perform(c) : refused(c); }

/* The handler's return sets the stack to what its frame says. */
static long changes_stack(const struct call *c) {
  if (c->a[0] && !(ffuzz_changes->what & CHANGED_STACK)) {
    CALL(sigaltstack, NULL, &ffuzz_changes->stack);
    ffuzz_changes->what |= CHANGED_STACK;
  }
  long error = perform(c);
  if (!error) CALL(sigaltstack, NULL, &c->at->uc_stack);
  return error;
}

static long changes_folder(const struct call *c) {
  if (ffuzz_changes->what & CHANGED_FOLDER) return perform(c);
  long here = CALL(openat, AT_FDCWD, ".", O_PATH | O_CLOEXEC);
  if (here < 0) return refused(c);
  CALL(dup3, here, OWN_FOLDER, O_CLOEXEC);
  CALL(close, here);
  return noted(c, CHANGED_FOLDER);
}

static long changes_umask(const struct call *c) {
  long before = perform(c);
  if (!(ffuzz_changes->what & CHANGED_UMASK)) ffuzz_changes->umask = (uint32_t)before;
  ffuzz_changes->what |= CHANGED_UMASK;
  return before;
}

static long asks_process(const struct call *c) {
  switch (c->a[0]) {
    case PR_GET_DUMPABLE:
    case PR_GET_NAME:
    case PR_GET_SECCOMP:
    case PR_GET_NO_NEW_PRIVS:
    case PR_GET_TIMERSLACK:
    case PR_GET_KEEPCAPS:
    case PR_CAPBSET_READ: return perform(c);
  }
  return refused(c);
}

static long ends(const struct call *c) { ffuzz_snapshot_run_ends((int)c->a[0]); }

static long starts_process(const struct call *c) { ffuzz_give_up(FFUZZ_WHY_PROCESS, c->number); }

static long answer(const struct call *c) {
  switch (c->number) {
    case SYS_exit:
    case SYS_exit_group: return ends(c);
    case SYS_clone:
    case SYS_clone3:
    case SYS_execve:
    case SYS_execveat: return starts_process(c);
    case SYS_mmap: return maps(c);
    case SYS_munmap: return unmaps(c);
    case SYS_mprotect: return protects(c);
    case SYS_mremap: return moves(c);
    case SYS_madvise: return advises(c);
    case SYS_brk: return moves_heap_end(c);
    case SYS_mlock:
    case SYS_mlock2:
    case SYS_munlock: return noted(c, CHANGED_LOCKS);
    case SYS_close: return closes(c);
    case SYS_close_range: return closes_range(c);
    case SYS_dup3: return replaces(c);
    case SYS_fcntl: return sets_flags(c);
    case SYS_flock: return locks(c);
    case SYS_rt_sigaction: return handles(c);
    case SYS_kill:
    case SYS_tkill:
    case SYS_tgkill: return sends(c);
    case SYS_sigaltstack: return changes_stack(c);
    case SYS_chdir:
    case SYS_fchdir: return changes_folder(c);
    case SYS_umask: return changes_umask(c);
    case SYS_setitimer: return noted(c, CHANGED_TIMERS);
    case SYS_unlinkat:
    case SYS_renameat:
    case SYS_renameat2: return removes(c, c->a[0], c->a[1]);
    case SYS_prctl: return asks_process(c);
    case SYS_openat:
    case SYS_mkdirat: return leaves(c, c->a[0], c->a[1]);
    case SYS_symlinkat: return leaves(c, c->a[1], c->a[2]);
    case SYS_linkat: return leaves(c, c->a[2], c->a[3]);
    case SYS_fchmodat:
    case SYS_fchownat: return sets_file(c, c->a[0], c->a[1]);
    case SYS_truncate: return sets_file(c, AT_FDCWD, c->a[0]);
    case SYS_bind: return binds(c);
#ifdef SYS_open
    case SYS_open:
    case SYS_creat:
    case SYS_mkdir: return leaves(c, AT_FDCWD, c->a[0]);
    case SYS_symlink:
    case SYS_link: return leaves(c, AT_FDCWD, c->a[1]);
    case SYS_chmod:
    case SYS_chown:
    case SYS_lchown: return sets_file(c, AT_FDCWD, c->a[0]);
    case SYS_rmdir: return removes(c, AT_FDCWD, c->a[0]);
    case SYS_fork:
    case SYS_vfork: return starts_process(c);
    case SYS_dup2: return replaces(c);
    case SYS_alarm: return noted(c, CHANGED_TIMERS);
    case SYS_unlink:
    case SYS_rename: return removes(c, AT_FDCWD, c->a[0]);
#endif
  }
  return ffuzz_call_changes_nothing(c) ? perform(c) : refused(c);
}

HIDDEN void ffuzz_on_trap(int signal_number, siginfo_t *info, void *context) {
  ucontext_t *at = context;
  (void)signal_number;
  /* Somebody has sent it, or another kind of system call. */
  if (info->si_code != CODE_SECCOMP || info->si_arch != MACHINE_ARCH) ffuzz_give_up(FFUZZ_WHY_SIGNAL, SIGSYS);
  struct call c = trapped_call(info, at);
  trapped_returns(at, answer(&c));
}
#endif
