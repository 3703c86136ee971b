#define _GNU_SOURCE
#include "net/files.h"

#include <errno.h>
#include <stdlib.h>

#include "net/kernel.h"

static struct net_file files[NET_MOST], *behind[NET_MOST], *standard[3];

static struct net_file **place_of(int number) {
  if (number >= 0 && number < 3) return &standard[number];
  return ffuzz_net_is_virtual(number) ? &behind[number - NET_FIRST] : NULL;
}

HIDDEN struct net_file *ffuzz_net_file(int number) {
  struct net_file **place = place_of(number);
  return place ? *place : NULL;
}

HIDDEN int ffuzz_net_number(struct net_file *file, int least) {
  for (int i = least > NET_FIRST ? least - NET_FIRST : 0; i < NET_MOST; i++)
    if (!behind[i]) return ffuzz_net_put(file, NET_FIRST + i);
  FAIL(EMFILE);
}

HIDDEN int ffuzz_net_put(struct net_file *file, int number) {
  *place_of(number) = file;
  file->uses++;
  return number;
}

HIDDEN int ffuzz_net_open(enum net_kind kind, int domain, int type) {
  struct net_file *file = NULL;
  for (int i = 0; i < NET_MOST && !file; i++)
    if (files[i].kind == FILE_FREE && !files[i].uses) file = &files[i];
  if (!file) FAIL(EMFILE);
  /* Memory that an earlier file had is used again. */
  uint8_t *bytes = file->bytes;
  struct net_watched *watched = file->watched;
  if (kind == FILE_EPOLL && !watched) watched = malloc(NET_WATCHED * sizeof *watched);
  if ((kind == FILE_PIPE_IN || kind == FILE_PAIR) && !bytes) bytes = malloc(NET_PIPE);
  *file = (struct net_file){.kind = kind,
                            .domain = domain,
                            .type = type & 15,
                            .is_nonblocking = (type & SOCK_NONBLOCK) != 0,
                            .news = 1,
                            .bytes = bytes,
                            .watched = watched};
  for (int i = 0; kind == FILE_EPOLL && i < NET_WATCHED; i++) watched[i].number = -1;
  int number = ffuzz_net_number(file, 0);
  if (number < 0) file->kind = FILE_FREE;
  return number;
}

HIDDEN void ffuzz_net_files_are_shared(void) {
  for (int i = 0; i < NET_MOST; i++) {
    enum net_kind kind = files[i].kind;
    if (files[i].uses && (kind == FILE_PIPE_IN || kind == FILE_PIPE_OUT || kind == FILE_PAIR)) files[i].uses++;
  }
}

HIDDEN int ffuzz_net_listeners(void) {
  int count = 0;
  for (int i = 0; i < NET_MOST; i++) count += files[i].kind == FILE_LISTENER;
  return count;
}

HIDDEN uint64_t ffuzz_net_next_timer(void) {
  uint64_t first = 0;
  for (int i = 0; i < NET_MOST; i++)
    if (files[i].kind == FILE_TIMER && files[i].due && (!first || files[i].due < first)) first = files[i].due;
  return first;
}

/* A number that is closed is not watched any more. (The kernel watches on while another number stands for the file.) */
static void forget_watched(int number) {
  for (int i = 0; i < NET_MOST; i++)
    for (int k = 0; files[i].kind == FILE_EPOLL && k < NET_WATCHED; k++)
      if (files[i].watched[k].number == number) files[i].watched[k].number = -1;
}

HIDDEN struct net_file *ffuzz_net_take_away(int number) {
  struct net_file *file = *place_of(number);
  *place_of(number) = NULL;
  forget_watched(number);
  if (--file->uses) return NULL;
  if (file->peer) {
    file->peer->peer = NULL;
    file->peer->news++;
  }
  return file;
}
