/* See server.h. */
#define _GNU_SOURCE
#include "qemu/server.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "channel.h"
#include "qemu/warm.h"

#define CONTROL 198
#define STATUS 199
/* Options follow, and the size of the map is one of them (AFL++ 2.6 to 4.10). */
#define HELLO_SIZE 0xc0000001u

static size_t map_size = 1 << 16;

unsigned char *ffuzz_qemu_map(size_t *size) {
  const char *id = getenv("__AFL_SHM_ID");
  if (!id) return NULL;
  if (getenv(FFUZZ_CHANNEL_ENV)) map_size = 1 << 18;
  *size = map_size;
  void *map = shmat(atoi(id), NULL, 0);
  return map == (void *)-1 ? NULL : map;
}

static int exchange(int send, int descriptor, void *word) {
  ssize_t done;
  do done = send ? write(descriptor, word, 4) : read(descriptor, word, 4);
  while (done < 0 && errno == EINTR);
  return done == 4;
}

static int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return status;
}

void ffuzz_qemu_serve(int raw) {
  static int started;
  if (started) return;
  started = 1;
  int error = errno;
  /* To others it says nothing of its size, which is theirs then. */
  uint32_t word = map_size > 1 << 16 ? HELLO_SIZE | (uint32_t)(map_size - 1) << 1 : 0;
  if (!exchange(1, STATUS, &word)) return;
  while (exchange(0, CONTROL, &word)) {
    pid_t child = raw ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();
    if (child < 0) _exit(1);
    if (!child) {
      close(CONTROL);
      close(STATUS);
      ffuzz_qemu_warm_child();
      errno = error;
      return;
    }
    word = (uint32_t)child;
    if (!exchange(1, STATUS, &word)) break;
    word = (uint32_t)wait_for(child);
    ffuzz_qemu_warm_up();
    if (!exchange(1, STATUS, &word)) break;
  }
  _exit(0);
}
