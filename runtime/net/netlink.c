#define _GNU_SOURCE
#include "net/netlink.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "net/kernel.h"

#define MOST_BYTES 256

/* An answer that is put together. */
struct answer {
  _Alignas(8) uint8_t bytes[MOST_BYTES];
  size_t length, head; /* `head`: where the last message begins */
};

static void add(struct answer *answer, const void *from, size_t length) {
  memcpy(answer->bytes + answer->length, from, length);
  answer->length += length;
  ((struct nlmsghdr *)(answer->bytes + answer->head))->nlmsg_len = (uint32_t)(answer->length - answer->head);
}

static void begin(struct answer *answer, uint16_t type, uint32_t number) {
  struct nlmsghdr head = {0, type, NLM_F_MULTI, number, (uint32_t)getpid()};
  answer->head = answer->length;
  add(answer, &head, sizeof head);
}

static void add_attribute(struct answer *answer, uint16_t type, const void *from, size_t length) {
  struct rtattr head = {(uint16_t)(sizeof head + length), type};
  add(answer, &head, sizeof head);
  add(answer, from, length);
}

static void add_address(struct answer *answer, uint32_t number, uint8_t family, const void *address, size_t length) {
  struct ifaddrmsg head = {family, (uint8_t)(length == 4 ? 8 : 128), IFA_F_PERMANENT, RT_SCOPE_HOST, 1};
  begin(answer, RTM_NEWADDR, number);
  add(answer, &head, sizeof head);
  add_attribute(answer, IFA_ADDRESS, address, length);
  if (family == AF_INET) add_attribute(answer, IFA_LOCAL, address, length);
}

/* A request is kept as its number, and the family if it is for addresses; 255: it is for something else. */
HIDDEN void ffuzz_net_ask_netlink(struct net_file *file, const struct iovec *from, int parts) {
  if (parts < 1 || from[0].iov_len < sizeof(struct nlmsghdr) + 1) return;
  const struct nlmsghdr *head = from[0].iov_base;
  file->port = head->nlmsg_type == RTM_GETADDR ? *(const uint8_t *)(head + 1) : 255;
  file->count = (uint64_t)head->nlmsg_seq << 1 | 1;
  file->news++;
}

HIDDEN ssize_t ffuzz_net_netlink_answer(struct net_file *file, const struct iovec *to, int parts, int flags,
                                        uint32_t *whole) {
  struct answer answer = {.length = 0};
  struct in_addr here = {htonl(INADDR_LOOPBACK)};
  uint32_t number = (uint32_t)(file->count >> 1);
  int error = 0;
  if (!file->count) FAIL(EAGAIN);
  if (file->port == AF_INET || file->port == AF_UNSPEC) add_address(&answer, number, AF_INET, &here, sizeof here);
  if (file->port == AF_INET6 || file->port == AF_UNSPEC)
    add_address(&answer, number, AF_INET6, &in6addr_loopback, sizeof in6addr_loopback);
  begin(&answer, NLMSG_DONE, number);
  add(&answer, &error, sizeof error);
  size_t done = 0;
  *whole = (uint32_t)answer.length;
  for (int i = 0; i < parts && done < answer.length; i++) {
    size_t left = answer.length - done, length = to[i].iov_len < left ? to[i].iov_len : left;
    memcpy(to[i].iov_base, answer.bytes + done, length);
    done += length;
  }
  if (!(flags & MSG_PEEK)) file->count = 0;
  return (ssize_t)done;
}
