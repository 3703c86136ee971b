/* The session: which message is offered where, and when the run is over.
 *
 * A message is offered when the program next asks for something to read, after it has taken the whole of the one
 * before, and has written what it wants to write. Behind the last message the peers have closed their connections. The run ends when the program waits and
 * nothing can come. The rules follow those of Nyx-Net's emulation of sockets (Schumilo et al., EuroSys 2022). */
#ifndef FFUZZ_NET_SESSION_H
#define FFUZZ_NET_SESSION_H

#include <sys/uio.h>

#include "net/files.h"
#include "net/input.h"
#include "net/transcript.h"

/* What a receive has found beside its bytes. */
struct net_received {
  int slot;         /* the connection */
  int is_truncated; /* the rest of a datagram is lost */
  uint32_t whole;   /* bytes of the datagram */
};

/* Whether the fuzzer wants to connect to its listener; `asks`: by a call that waits, or asks what is ready. */
HIDDEN int ffuzz_net_can_accept(struct net_file *listener, int asks);
/* A new connection, and its number. */
HIDDEN int ffuzz_net_accept(void);
/* Makes a connected socket of a client, or the bound socket of a server of datagrams, the session. */
HIDDEN void ffuzz_net_session_begins(struct net_file *file);
HIDDEN void ffuzz_net_session_closes(struct net_file *file);
HIDDEN int ffuzz_net_has_begun(void);
/* Whether a receive finds a message, or the end. */
HIDDEN int ffuzz_net_is_readable(struct net_file *file);
HIDDEN int ffuzz_net_has_ended(const struct net_file *file);
/* The program could write, and asks for that: whether it may do it before it gets a message. */
HIDDEN int ffuzz_net_defers(void);
/* Flags are those of recv(); -1 and errno. */
HIDDEN ssize_t ffuzz_net_receive(struct net_file *file, const struct iovec *to, int parts, int flags,
                                 struct net_received *received);
HIDDEN void ffuzz_net_answer(struct net_file *file, const struct iovec *from, int parts);
/* What FIONREAD tells. */
HIDDEN uint32_t ffuzz_net_waiting_bytes(const struct net_file *file);

/* The program waits for `limit` nanoseconds (below 0: for ever), and nothing is there. 0: the time is over; 1: it
 * should look again. Ends the run if nothing can come. `call` names what waits. */
HIDDEN int ffuzz_net_waits(int64_t limit, const char *call);
HIDDEN void ffuzz_net_run_ends(const char *call) __attribute__((noreturn));

/* The address of the loopback, of the family of a socket, with a port. Returns its length. */
HIDDEN socklen_t ffuzz_net_loopback(const struct net_file *file, int port, struct sockaddr_storage *to);
#define NET_PEER_PORT 40000

#endif
