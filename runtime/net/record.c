#define _GNU_SOURCE
#include "net/record.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "net/kernel.h"
#include "net/options.h"
#include "net/transcript.h"

#define MOST 16 /* peers */
#define LONGEST 65536u
/* Bytes of all messages, AFL's limit for a test case. */
#define ROOM (1u << 20)
/* Milliseconds that a peer may be silent; and one that sends datagrams, after its first. */
#define SILENCE 60000
#define QUIET 2000

static int is_on;
/* In the order of their slots. */
static struct peer {
  int socket; /* of the kernel; of a server of datagrams NET_REAL */
  int is_gone;
  struct sockaddr_storage address; /* of a sender of datagrams */
  socklen_t address_length;
} peers[MOST];
static int count, named, last; /* `last`: the slot of the last datagram */
static uint8_t bytes[ROOM];
static uint32_t used;

HIDDEN void ffuzz_net_record_starts(void) {
  is_on = getenv("FFUZZ_NET_RECORD") && ffuzz_kernel(SYS_fcntl, NET_RECORD, F_GETFD, 0, 0, 0, 0) >= 0;
}

HIDDEN int ffuzz_net_records(void) { return is_on; }

static int has_datagrams(void) { return ffuzz_net.protocol == UDP; }
static int is_server(void) { return ffuzz_net.role == ROLE_SERVER; }

static int is_ready(int socket, int limit) {
  struct pollfd one = {socket, POLLIN, 0};
  return REAL(poll, &one, 1, limit) == 1;
}

static void add_peer(long socket) {
  if (socket >= 0 && count < MOST) peers[count++] = (struct peer){.socket = (int)socket};
}

HIDDEN void ffuzz_net_record_opens(const struct net_file *file, int slot) {
  if (!is_on || slot < count) return;
  if (!is_server()) {
    long made = REAL(socket, file->domain, file->type | SOCK_CLOEXEC, 0);
    if (REAL(connect, made, &file->remote, file->remote_length)) ffuzz_net_note_word(NET_REFUSED, "a peer that does not answer");
    add_peer(made);
  } else if (!has_datagrams() && is_ready(NET_REAL, SILENCE))
    add_peer(REAL(accept4, NET_REAL, NULL, NULL, SOCK_CLOEXEC));
}

static int slot_of_sender(const struct sockaddr_storage *address, socklen_t length) {
  for (int i = 0; i < count; i++)
    if (peers[i].address_length == length && !memcmp(&peers[i].address, address, length)) return i;
  if (count == MOST) return MOST - 1;
  peers[count] = (struct peer){.socket = NET_REAL, .address = *address, .address_length = length};
  return count++;
}

static int take_down(struct net_message *message, int slot, uint32_t length) {
  uint32_t word = length | (uint32_t)slot << 24;
  *message = (struct net_message){bytes + used, length, (uint32_t)slot};
  struct iovec parts[] = {{&word, sizeof word}, {bytes + used, length}};
  REAL(writev, NET_RECORD, parts, 2);
  used += length;
  if (named <= slot) named = slot + 1;
  return 1;
}

static int next_datagram(struct net_message *message) {
  struct sockaddr_storage from;
  socklen_t length = sizeof from;
  int socket = is_server() ? NET_REAL : count ? peers[0].socket : -1;
  memset(&from, 0, sizeof from);
  if (socket < 0 || !is_ready(socket, named ? QUIET : SILENCE)) return 0;
  long n = REAL(recvfrom, socket, bytes + used, LONGEST, 0, &from, &length);
  if (n < 0) return 0;
  last = is_server() ? slot_of_sender(&from, length) : 0;
  return take_down(message, last, (uint32_t)n);
}

/* The end of one of several connections is an empty message; that of the last one is the end of all. */
static int goes(struct net_message *message, int slot) {
  peers[slot].is_gone = 1;
  for (int i = 0; i < count; i++)
    if (!peers[i].is_gone) return take_down(message, slot, 0);
  return 0;
}

/* Slots are in the order in which peers speak first. */
static int slot_of_speaker(int i) {
  if (i <= named) return i;
  struct peer earlier = peers[named];
  peers[named] = peers[i];
  peers[i] = earlier;
  return named;
}

static int next_of_streams(struct net_message *message) {
  struct pollfd all[MOST + 1];
  for (;;) {
    /* A connection is known by what it sends, and the first one is the first to be known. */
    int polled = named ? count : count < 1 ? count : 1;
    for (int i = 0; i < polled; i++) all[i] = (struct pollfd){peers[i].is_gone ? -1 : peers[i].socket, POLLIN, 0};
    int is_open = named && is_server() && count < MOST;
    if (is_open) all[polled] = (struct pollfd){NET_REAL, POLLIN, 0};
    int is_left = 0;
    for (int i = 0; i < polled; i++) is_left |= !peers[i].is_gone;
    if (!is_left || REAL(poll, all, polled + is_open, SILENCE) <= 0) return 0;
    if (is_open && all[polled].revents) add_peer(REAL(accept4, NET_REAL, NULL, NULL, SOCK_CLOEXEC));
    for (int i = 0; i < polled; i++) {
      if (!all[i].revents) continue;
      int slot = slot_of_speaker(i);
      long n = REAL(recvfrom, peers[slot].socket, bytes + used, LONGEST, 0, NULL, NULL);
      return n > 0 ? take_down(message, slot, (uint32_t)n) : goes(message, slot);
    }
  }
}

HIDDEN int ffuzz_net_record_next(struct net_message *message) {
  static int is_over;
  if (!is_over) is_over = used + LONGEST > ROOM || !(has_datagrams() ? next_datagram(message) : next_of_streams(message));
  return !is_over;
}

HIDDEN void ffuzz_net_record_answer(int slot, const void *answer, size_t length) {
  if (!is_on) return;
  if (slot == NET_ANY_SLOT) slot = last;
  if (slot >= count || peers[slot].is_gone) return;
  struct peer *peer = &peers[slot];
  const uint8_t *at = answer;
  if (has_datagrams()) {
    REAL(sendto, peer->socket, at, length, MSG_NOSIGNAL, peer->address_length ? &peer->address : NULL, peer->address_length);
    return;
  }
  for (long n; length && (n = REAL(sendto, peer->socket, at, length, MSG_NOSIGNAL, NULL, 0)) > 0; length -= (size_t)n) at += n;
}

HIDDEN void ffuzz_net_record_closes(int slot) {
  if (!is_on || has_datagrams() || slot < 0 || slot >= count || peers[slot].is_gone) return;
  REAL(shutdown, peers[slot].socket, SHUT_RDWR);
  peers[slot].is_gone = 1;
}
