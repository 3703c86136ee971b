/* Reading and writing. */
#define _GNU_SOURCE
#include <limits.h>
#include <netinet/in.h>
#include <string.h>

#include "net/chance.h"
#include "net/kernel.h"
#include "net/netlink.h"
#include "net/options.h"
#include "net/session.h"
#include "net/sockets.h"

static size_t room_in(const struct iovec *parts, int count) {
  size_t room = 0;
  for (int i = 0; i < count; i++) room += parts[i].iov_len;
  return room;
}

/* Takes bytes from the front of a pipe. */
static ssize_t take_from_pipe(struct net_file *file, const struct iovec *to, int parts, int peeks) {
  size_t done = 0;
  for (int i = 0; i < parts && done < file->count; i++) {
    size_t left = file->count - done, length = to[i].iov_len < left ? to[i].iov_len : left;
    memcpy(to[i].iov_base, file->bytes + done, length);
    done += length;
  }
  if (peeks) return (ssize_t)done;
  file->count -= done;
  memmove(file->bytes, file->bytes + done, file->count);
  return (ssize_t)done;
}

static ssize_t take_number(uint64_t number, const struct iovec *to) {
  if (to->iov_len < sizeof number) FAIL(EINVAL);
  memcpy(to->iov_base, &number, sizeof number);
  return sizeof number;
}

static uint64_t expirations(struct net_file *timer) {
  uint64_t now = ffuzz_net_now(), count = 1;
  if (!timer->due || now < timer->due) return 0;
  if (timer->interval) count += (now - timer->due) / timer->interval;
  timer->due = timer->interval ? timer->due + count * timer->interval : 0;
  return count;
}

/* One attempt; -1 with EAGAIN if nothing is there. */
static ssize_t try_to_take(struct net_file *file, const struct iovec *to, int parts, int flags) {
  uint64_t count;
  switch (file->kind) {
    case FILE_PIPE_IN:
    case FILE_PAIR:
      if (file->count) return take_from_pipe(file, to, parts, flags & MSG_PEEK);
      if (!file->peer || file->peer->is_shut) return 0;
      FAIL(EAGAIN);
    case FILE_EVENTS:
      if (!(count = file->count)) FAIL(EAGAIN);
      /* A semaphore is counted down. */
      file->count = file->interval ? count - 1 : 0;
      return take_number(file->interval ? 1 : count, to);
    case FILE_TIMER:
      if (!(count = expirations(file))) FAIL(EAGAIN);
      return take_number(count, to);
    case FILE_RANDOM:
      for (int i = 0; i < parts; i++) ffuzz_net_random(to[i].iov_base, to[i].iov_len);
      return (ssize_t)room_in(to, parts);
    case FILE_SOCKET:
    case FILE_SILENT:
      if (file->type == SOCK_DGRAM || file->kind == FILE_SILENT) FAIL(EAGAIN);
      FAIL(ENOTCONN);
    case FILE_REFUSED: FAIL(ECONNREFUSED);
    default: FAIL(EINVAL);
  }
}

static ssize_t take(struct net_file *file, const struct iovec *to, int parts, int flags, struct net_received *received) {
  int waits = !file->is_nonblocking && !(flags & MSG_DONTWAIT);
  if (flags & MSG_ERRQUEUE) FAIL(EAGAIN);
  if (flags & MSG_OOB) FAIL(EINVAL);
  if (file->kind == FILE_NETLINK) return ffuzz_net_netlink_answer(file, to, parts, flags, &received->whole);
  if (file->kind == FILE_SESSION) {
    if (file->type != SOCK_DGRAM && !room_in(to, parts)) return 0;
    return ffuzz_net_receive(file, to, parts, flags, received);
  }
  for (;;) {
    ssize_t result = try_to_take(file, to, parts, flags);
    if (result >= 0 || errno != EAGAIN) return result;
    if (!waits) FAIL(EAGAIN);
    if (!ffuzz_net_waits(file->read_limit ? file->read_limit : -1, "read")) FAIL(EAGAIN);
  }
}

/* MSG_WAITALL: a stream fills the memory, or ends. */
static ssize_t receive(struct net_file *file, void *to, size_t length, int flags, struct net_received *received) {
  struct iovec part = {to, length};
  ssize_t done = take(file, &part, 1, flags, received);
  while (flags & MSG_WAITALL && file->type != SOCK_DGRAM && done > 0 && (size_t)done < length) {
    part = (struct iovec){(char *)to + done, length - (size_t)done};
    ssize_t more = take(file, &part, 1, flags, received);
    if (more <= 0) break;
    done += more;
  }
  return done;
}

static ssize_t write_to_pipe(struct net_file *to, const struct iovec *from, int parts) {
  size_t length = room_in(from, parts);
  if (length > NET_PIPE - to->count) {
    length = NET_PIPE - to->count;
    if (!length) FAIL(EAGAIN);
  }
  size_t left = length;
  for (int i = 0; i < parts && left; i++) {
    size_t some = from[i].iov_len < left ? from[i].iov_len : left;
    memcpy(to->bytes + to->count, from[i].iov_base, some);
    to->count += some, left -= some;
  }
  to->news++;
  return (ssize_t)length;
}

/* A write never waits: the other side takes all. */
static ssize_t give(struct net_file *file, const struct iovec *from, int parts) {
  uint64_t number;
  switch (file->kind) {
    case FILE_PIPE_OUT:
    case FILE_PAIR: return file->peer ? write_to_pipe(file->peer, from, parts) : (errno = EPIPE, -1);
    case FILE_EVENTS:
      if (parts < 1 || from[0].iov_len < sizeof number) FAIL(EINVAL);
      memcpy(&number, from[0].iov_base, sizeof number);
      file->count += number;
      file->news++;
      return sizeof number;
    case FILE_SESSION:
      if (file->is_shut) FAIL(EPIPE);
      ffuzz_net_answer(file, from, parts);
      return (ssize_t)room_in(from, parts);
    case FILE_NETLINK: ffuzz_net_ask_netlink(file, from, parts); return (ssize_t)room_in(from, parts);
    case FILE_SOCKET:
      if (file->type != SOCK_DGRAM) FAIL(ENOTCONN);
      return (ssize_t)room_in(from, parts);
    case FILE_REFUSED: FAIL(EPIPE);
    default: return (ssize_t)room_in(from, parts);
  }
}

/* From whom a message is: of datagrams each connection is a peer of its own. */
static socklen_t sender(const struct net_file *file, const struct net_received *received, struct sockaddr_storage *to) {
  if (file->kind == FILE_SESSION && ffuzz_net.role == ROLE_CLIENT) {
    *to = file->remote;
    return file->remote_length;
  }
  if (file->kind == FILE_NETLINK) {
    *to = (struct sockaddr_storage){.ss_family = AF_NETLINK};
    return 12;
  }
  return ffuzz_net_loopback(file, NET_PEER_PORT + received->slot, to);
}

PUBLIC ssize_t read(int number, void *to, size_t length) {
  struct net_file *file = ffuzz_net_file(number);
  struct net_received received = {0};
  return file ? receive(file, to, length, 0, &received) : REAL(read, number, to, length);
}

PUBLIC ssize_t readv(int number, const struct iovec *to, int parts) {
  struct net_file *file = ffuzz_net_file(number);
  struct net_received received = {0};
  return file ? take(file, to, parts, 0, &received) : REAL(readv, number, to, parts);
}

PUBLIC ssize_t write(int number, const void *from, size_t length) {
  struct net_file *file = ffuzz_net_file(number);
  struct iovec part = {(void *)(uintptr_t)from, length};
  return file ? give(file, &part, 1) : REAL(write, number, from, length);
}

PUBLIC ssize_t writev(int number, const struct iovec *from, int parts) {
  struct net_file *file = ffuzz_net_file(number);
  return file ? give(file, from, parts) : REAL(writev, number, from, parts);
}

PUBLIC ssize_t recvfrom(int number, void *to, size_t length, int flags, struct sockaddr *from, socklen_t *from_length) {
  struct net_file *file = ffuzz_net_file(number);
  struct net_received received = {0};
  if (!file) return REAL(recvfrom, number, to, length, flags, from, from_length);
  ssize_t done = receive(file, to, length, flags, &received);
  if (done >= 0 && from && from_length) {
    struct sockaddr_storage address;
    socklen_t whole = sender(file, &received, &address);
    memcpy(from, &address, *from_length < whole ? *from_length : whole);
    *from_length = whole;
  }
  int tells_whole = flags & MSG_TRUNC && (file->type == SOCK_DGRAM || file->kind == FILE_NETLINK);
  return done >= 0 && tells_whole && received.whole > (size_t)done ? (ssize_t)received.whole : done;
}

PUBLIC ssize_t recv(int number, void *to, size_t length, int flags) {
  return recvfrom(number, to, length, flags, NULL, NULL);
}

PUBLIC ssize_t sendto(int number, const void *from, size_t length, int flags, const struct sockaddr *to,
                      socklen_t to_length) {
  struct net_file *file = ffuzz_net_file(number);
  struct iovec part = {(void *)(uintptr_t)from, length};
  if (!file) return REAL(sendto, number, from, length, flags, to, to_length);
  ffuzz_net_sends_to(file, to, to_length);
  return give(file, &part, 1);
}

PUBLIC ssize_t send(int number, const void *from, size_t length, int flags) {
  return sendto(number, from, length, flags, NULL, 0);
}

/* To which of our addresses a datagram was sent (ip(7), ipv6(7)). */
static size_t put_info(const struct net_file *file, struct msghdr *message) {
  struct cmsghdr *head = CMSG_FIRSTHDR(message);
  if (file->has_info == AF_INET && message->msg_controllen >= CMSG_SPACE(sizeof(struct in_pktinfo))) {
    struct in_pktinfo info = {1, {htonl(INADDR_LOOPBACK)}, {htonl(INADDR_LOOPBACK)}};
    *head = (struct cmsghdr){CMSG_LEN(sizeof info), IPPROTO_IP, IP_PKTINFO};
    memcpy(CMSG_DATA(head), &info, sizeof info);
    return CMSG_SPACE(sizeof info);
  }
  if (file->has_info == AF_INET6 && message->msg_controllen >= CMSG_SPACE(sizeof(struct in6_pktinfo))) {
    struct in6_pktinfo info = {in6addr_loopback, 1};
    *head = (struct cmsghdr){CMSG_LEN(sizeof info), IPPROTO_IPV6, IPV6_PKTINFO};
    memcpy(CMSG_DATA(head), &info, sizeof info);
    return CMSG_SPACE(sizeof info);
  }
  return 0;
}

PUBLIC ssize_t recvmsg(int number, struct msghdr *message, int flags) {
  struct net_file *file = ffuzz_net_file(number);
  struct net_received received = {0};
  if (!file) return REAL(recvmsg, number, message, flags);
  ssize_t done = take(file, message->msg_iov, (int)message->msg_iovlen, flags, &received);
  if (done < 0) return done;
  message->msg_flags = received.is_truncated ? MSG_TRUNC : 0;
  if (message->msg_name) {
    struct sockaddr_storage address;
    socklen_t whole = sender(file, &received, &address);
    memcpy(message->msg_name, &address, message->msg_namelen < whole ? message->msg_namelen : whole);
    message->msg_namelen = whole;
  }
  message->msg_controllen = message->msg_control ? put_info(file, message) : 0;
  int tells_whole = flags & MSG_TRUNC && received.whole > (size_t)done;
  return tells_whole ? (ssize_t)received.whole : done;
}

PUBLIC int recvmmsg(int number, struct mmsghdr *messages, unsigned count, int flags, struct timespec *limit) {
  unsigned done = 0;
  if (!ffuzz_net_file(number)) return (int)REAL(recvmmsg, number, messages, count, flags, limit);
  for (; done < count; done++) {
    ssize_t length = recvmsg(number, &messages[done].msg_hdr, done ? flags | MSG_DONTWAIT : flags & ~MSG_WAITFORONE);
    if (length < 0) break;
    messages[done].msg_len = (unsigned)length;
  }
  return done ? (int)done : -1;
}

PUBLIC ssize_t sendmsg(int number, const struct msghdr *message, int flags) {
  struct net_file *file = ffuzz_net_file(number);
  if (!file) return REAL(sendmsg, number, message, flags);
  ffuzz_net_sends_to(file, message->msg_name, message->msg_namelen);
  return give(file, message->msg_iov, (int)message->msg_iovlen);
}

PUBLIC int sendmmsg(int number, struct mmsghdr *messages, unsigned count, int flags) {
  unsigned done = 0;
  if (!ffuzz_net_file(number)) return (int)REAL(sendmmsg, number, messages, count, flags);
  for (; done < count; done++) {
    ssize_t length = sendmsg(number, &messages[done].msg_hdr, flags);
    if (length < 0) break;
    messages[done].msg_len = (unsigned)length;
  }
  return done || !count ? (int)done : -1;
}

PUBLIC ssize_t sendfile(int out, int in, off_t *from, size_t length) {
  struct net_file *file = ffuzz_net_file(out);
  uint8_t bytes[16384];
  if (!file) return REAL(sendfile, out, in, from, length);
  if (length > sizeof bytes) length = sizeof bytes;
  ssize_t done = from ? REAL(pread64, in, bytes, length, *from) : REAL(read, in, bytes, length);
  if (done <= 0) return done;
  if (from) *from += done;
  struct iovec part = {bytes, (size_t)done};
  return give(file, &part, 1);
}

PUBLIC ssize_t sendfile64(int, int, off64_t *, size_t) __attribute__((alias("sendfile")));

PUBLIC ssize_t splice(int in, off64_t *in_offset, int out, off64_t *out_offset, size_t length, unsigned flags) {
  struct net_file *from = ffuzz_net_file(in), *to = ffuzz_net_file(out);
  uint8_t bytes[4096];
  if (!from && !to) return REAL(splice, in, in_offset, out, out_offset, length, flags);
  if (length > sizeof bytes) length = sizeof bytes;
  ssize_t done = read(in, bytes, length);
  return done > 0 ? write(out, bytes, (size_t)done) : done;
}

/* What _FORTIFY_SOURCE calls: `room` is the size of the memory. */
extern void __chk_fail(void) __attribute__((noreturn));

PUBLIC ssize_t __read_chk(int number, void *to, size_t length, size_t room) {
  if (length > room) __chk_fail();
  return read(number, to, length);
}

PUBLIC ssize_t __recv_chk(int number, void *to, size_t length, size_t room, int flags) {
  if (length > room) __chk_fail();
  return recv(number, to, length, flags);
}

PUBLIC ssize_t __recvfrom_chk(int number, void *to, size_t length, size_t room, int flags, struct sockaddr *from,
                              socklen_t *from_length) {
  if (length > room) __chk_fail();
  return recvfrom(number, to, length, flags, from, from_length);
}
