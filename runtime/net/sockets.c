/* Sockets: their making, names and options. */
#define _GNU_SOURCE
#include "net/sockets.h"

#include <linux/netlink.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "net/kernel.h"
#include "net/netlink.h"
#include "net/options.h"
#include "net/session.h"

static int port_of(const struct sockaddr *address, socklen_t length) {
  if (length < sizeof(struct sockaddr_in)) return 0;
  if (address->sa_family != AF_INET && address->sa_family != AF_INET6) return 0;
  return ntohs(((const struct sockaddr_in *)address)->sin_port); /* at the same place in both */
}

/* The path of a local socket, without an end if it fills its field. */
static size_t path_of(const struct sockaddr *address, socklen_t length, const char **path) {
  const size_t head = offsetof(struct sockaddr_un, sun_path);
  *path = ((const struct sockaddr_un *)address)->sun_path;
  return length > head ? strnlen(*path, length - head) : 0;
}

static int is_port(int port) { return !ffuzz_net.port || port == ffuzz_net.port; }

static void keep(struct sockaddr_storage *to, socklen_t *to_length, const struct sockaddr *from, socklen_t length) {
  *to_length = length < sizeof *to ? length : sizeof *to;
  memcpy(to, from, *to_length);
}

static void give(struct sockaddr *to, socklen_t *length, const void *from, socklen_t whole) {
  if (!to || !length) return;
  memcpy(to, from, *length < whole ? *length : whole);
  *length = whole;
}

PUBLIC int socket(int domain, int type, int protocol) {
  int kind = type & 15, is_ip = domain == AF_INET || domain == AF_INET6;
  if (!ffuzz_net.role) return (int)REAL(socket, domain, type, protocol);
  if (domain == AF_NETLINK) return ffuzz_net_open(FILE_NETLINK, domain, type);
  int is_known = kind == SOCK_STREAM || kind == SOCK_DGRAM || (domain == AF_UNIX && kind == SOCK_SEQPACKET);
  if ((is_ip || domain == AF_UNIX) && is_known && protocol != IPPROTO_SCTP && protocol != IPPROTO_ICMP)
    return ffuzz_net_open(FILE_SOCKET, domain, type);
  ffuzz_net_note_word(NET_REFUSED, kind == SOCK_RAW                ? "socket(…, SOCK_RAW)"
                                   : protocol == IPPROTO_SCTP      ? "socket(…, IPPROTO_SCTP)"
                                   : domain == AF_PACKET           ? "socket(AF_PACKET)"
                                                                   : "socket of another family");
  FAIL(is_ip ? EPROTONOSUPPORT : EAFNOSUPPORT);
}

PUBLIC int socketpair(int domain, int type, int protocol, int two[2]) {
  if (!ffuzz_net.role) return (int)REAL(socketpair, domain, type, protocol, two);
  two[0] = ffuzz_net_open(FILE_PAIR, domain, type);
  if (two[0] < 0) return -1;
  two[1] = ffuzz_net_open(FILE_PAIR, domain, type);
  if (two[1] < 0) return close(two[0]), errno = EMFILE, -1;
  ffuzz_net_file(two[0])->peer = ffuzz_net_file(two[1]);
  ffuzz_net_file(two[1])->peer = ffuzz_net_file(two[0]);
  return 0;
}

PUBLIC int bind(int number, const struct sockaddr *address, socklen_t length) {
  struct net_file *file = ffuzz_net_file(number);
  if (!file) return (int)REAL(bind, number, address, length);
  keep(&file->local, &file->local_length, address, length);
  file->port = port_of(address, length);
  if (!file->port && file->domain != AF_UNIX) {
    /* Any port is asked for. At the same place in the addresses of both families. */
    static int last = NET_PEER_PORT + NET_CONNECTIONS;
    file->port = ++last;
    ((struct sockaddr_in *)&file->local)->sin_port = htons((uint16_t)last);
  }
  int is_ours = file->kind == FILE_SOCKET && file->type == SOCK_DGRAM && file->domain != AF_UNIX &&
                ffuzz_net.role == ROLE_SERVER && ffuzz_net.protocol == UDP && is_port(file->port);
  if (file->type == SOCK_DGRAM && file->domain != AF_UNIX) ffuzz_net_note(NET_LISTENS, UDP, file->port, NULL, 0);
  if (is_ours && !ffuzz_net_has_begun()) ffuzz_net_session_begins(file);
  return 0;
}

static int is_listener(const struct net_file *file, const char *path, size_t length) {
  if (ffuzz_net.role != ROLE_SERVER || ffuzz_net.protocol == UDP) return 0;
  if (ffuzz_net.protocol == TCP) return file->domain != AF_UNIX && is_port(file->port);
  return file->domain == AF_UNIX && length == strlen(ffuzz_net.path) && !memcmp(path, ffuzz_net.path, length);
}

PUBLIC int listen(int number, int backlog) {
  struct net_file *file = ffuzz_net_file(number);
  const char *path = "";
  if (!file) return (int)REAL(listen, number, backlog);
  int is_unix = file->domain == AF_UNIX;
  size_t length = is_unix ? path_of((const struct sockaddr *)&file->local, file->local_length, &path) : 0;
  ffuzz_net_note(NET_LISTENS, is_unix ? UNIX : TCP, file->port, path, length);
  file->kind = is_listener(file, path, length) ? FILE_LISTENER : FILE_SILENT;
  return 0;
}

PUBLIC int accept4(int number, struct sockaddr *address, socklen_t *length, int flags) {
  struct net_file *listener = ffuzz_net_file(number);
  if (!listener) return (int)REAL(accept4, number, address, length, flags);
  if (listener->kind != FILE_LISTENER && listener->kind != FILE_SILENT) FAIL(EINVAL);
  while (listener->kind != FILE_LISTENER || !ffuzz_net_can_accept(listener, !listener->is_nonblocking)) {
    if (listener->is_nonblocking) FAIL(EAGAIN);
    if (!ffuzz_net_waits(listener->read_limit ? listener->read_limit : -1, "accept")) FAIL(EAGAIN);
  }
  int new = ffuzz_net_open(FILE_SESSION, listener->domain, listener->type | flags);
  if (new < 0) return -1;
  struct net_file *file = ffuzz_net_file(new);
  file->slot = ffuzz_net_accept();
  file->port = listener->port;
  file->is_only_v6 = listener->is_only_v6;
  file->local_length = ffuzz_net_loopback(file, file->port, &file->local);
  if (file->domain == AF_UNIX) keep(&file->local, &file->local_length, (void *)&listener->local, listener->local_length);
  file->remote_length = ffuzz_net_loopback(file, NET_PEER_PORT + file->slot, &file->remote);
  give(address, length, &file->remote, file->remote_length);
  return new;
}

PUBLIC int accept(int number, struct sockaddr *address, socklen_t *length) { return accept4(number, address, length, 0); }

static void note_connect(const struct net_file *file, const struct sockaddr *address, socklen_t length) {
  const char *path = "";
  int is_unix = address->sa_family == AF_UNIX;
  size_t bytes = is_unix ? path_of(address, length, &path) : 0;
  int protocol = is_unix ? UNIX : file->type == SOCK_DGRAM ? UDP : TCP;
  ffuzz_net_note(NET_CONNECTS, protocol, port_of(address, length), path, bytes);
}

/* Whether a client that turns to this address finds the fuzzer there. */
static int is_met(const struct net_file *file, const struct sockaddr *address, socklen_t length) {
  int is_datagram = file->type == SOCK_DGRAM, is_ip = address->sa_family == AF_INET || address->sa_family == AF_INET6;
  return ffuzz_net.role == ROLE_CLIENT && is_ip && is_datagram == (ffuzz_net.protocol == UDP) &&
         is_port(port_of(address, length));
}

PUBLIC int connect(int number, const struct sockaddr *address, socklen_t length) {
  struct net_file *file = ffuzz_net_file(number);
  if (!file) return (int)REAL(connect, number, address, length);
  if (length < sizeof(sa_family_t)) FAIL(EINVAL);
  note_connect(file, address, length);
  keep(&file->remote, &file->remote_length, address, length);
  if (file->kind == FILE_SESSION) return 0;
  if (is_met(file, address, length)) {
    file->port = port_of(address, length);
    ffuzz_net_session_begins(file);
    return 0;
  }
  if (file->type == SOCK_DGRAM && address->sa_family != AF_UNIX) {
    if (file->kind == FILE_SOCKET) file->kind = FILE_SILENT;
    return 0;
  }
  file->kind = FILE_REFUSED;
  FAIL(address->sa_family == AF_UNIX ? ENOENT : ECONNREFUSED);
}

/* The first datagram of a client that does not connect. */
HIDDEN void ffuzz_net_sends_to(struct net_file *file, const struct sockaddr *address, socklen_t length) {
  if (!address || length < sizeof(sa_family_t) || file->kind != FILE_SOCKET) return;
  note_connect(file, address, length);
  if (!is_met(file, address, length)) return;
  keep(&file->remote, &file->remote_length, address, length);
  file->port = port_of(address, length);
  ffuzz_net_session_begins(file);
}

PUBLIC int shutdown(int number, int how) {
  struct net_file *file = ffuzz_net_file(number);
  if (!file) return (int)REAL(shutdown, number, how);
  if (file->kind != FILE_SESSION && file->kind != FILE_PAIR) FAIL(ENOTCONN);
  if (how != SHUT_RD) file->is_shut = 1;
  return 0;
}

PUBLIC int getsockname(int number, struct sockaddr *address, socklen_t *length) {
  struct net_file *file = ffuzz_net_file(number);
  if (!file) return (int)REAL(getsockname, number, address, length);
  if (file->kind == FILE_NETLINK) {
    struct sockaddr_nl own = {.nl_family = AF_NETLINK, .nl_pid = (uint32_t)getpid()};
    give(address, length, &own, sizeof own);
    return 0;
  }
  if (!file->local_length) file->local_length = ffuzz_net_loopback(file, NET_PEER_PORT - 1, &file->local);
  give(address, length, &file->local, file->local_length);
  return 0;
}

PUBLIC int getpeername(int number, struct sockaddr *address, socklen_t *length) {
  struct net_file *file = ffuzz_net_file(number);
  if (!file) return (int)REAL(getpeername, number, address, length);
  if (!file->remote_length || file->kind == FILE_REFUSED) FAIL(ENOTCONN);
  give(address, length, &file->remote, file->remote_length);
  return 0;
}

PUBLIC int setsockopt(int number, int level, int name, const void *value, socklen_t length) {
  struct net_file *file = ffuzz_net_file(number);
  if (!file) return (int)REAL(setsockopt, number, level, name, value, length);
  if (level == IPPROTO_IP && name == IP_PKTINFO) file->has_info = AF_INET;
  if (level == IPPROTO_IPV6 && name == IPV6_RECVPKTINFO) file->has_info = AF_INET6;
  if (level == IPPROTO_IPV6 && name == IPV6_V6ONLY) file->is_only_v6 = length >= sizeof(int) && *(const int *)value;
  if (level == SOL_SOCKET && name == SO_RCVTIMEO && length >= sizeof(struct timeval)) {
    const struct timeval *limit = value;
    file->read_limit = (int64_t)limit->tv_sec * 1000000000 + (int64_t)limit->tv_usec * 1000;
  }
  return 0;
}

static int option_of(const struct net_file *file, int name) {
  switch (name) {
    case SO_TYPE: return file->type;
    case SO_DOMAIN: return file->domain;
    case SO_PROTOCOL: return file->domain == AF_UNIX ? 0 : file->type == SOCK_DGRAM ? IPPROTO_UDP : IPPROTO_TCP;
    case SO_ERROR: return file->kind == FILE_REFUSED ? ECONNREFUSED : 0;
    case SO_ACCEPTCONN: return file->kind == FILE_LISTENER || file->kind == FILE_SILENT;
    case SO_RCVBUF:
    case SO_SNDBUF: return 212992;
    case SO_REUSEADDR: return 1;
  }
  return 0;
}

PUBLIC int getsockopt(int number, int level, int name, void *value, socklen_t *length) {
  struct net_file *file = ffuzz_net_file(number);
  if (!file) return (int)REAL(getsockopt, number, level, name, value, length);
  memset(value, 0, *length);
  if (level == IPPROTO_IP && name == IP_OPTIONS) return *length = 0, 0;
  if (level == SOL_SOCKET && name == SO_PEERCRED && *length >= sizeof(struct ucred)) {
    struct ucred us = {getpid(), (uid_t)REAL(getuid), (gid_t)REAL(getgid)};
    memcpy(value, &us, sizeof us);
    return 0;
  }
  int number_of = level == SOL_SOCKET ? option_of(file, name) : 0;
  if (*length >= sizeof number_of) memcpy(value, &number_of, *length = sizeof number_of);
  return 0;
}
