/* Descriptors of the stand-in: numbers that the kernel does not know, and what lies behind them. */
#ifndef FFUZZ_NET_FILES_H
#define FFUZZ_NET_FILES_H

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base.h"

/* Above what most programs open, and below the descriptors of the stand-in and of the runtime. A number below 1024
 * fits the sets of select(). */
enum { NET_FIRST = 64, NET_MOST = 114, NET_WATCHED = 128, NET_PIPE = 65536 };

enum net_kind {
  FILE_FREE,
  FILE_SOCKET,    /* neither listening nor connected */
  FILE_LISTENER,  /* where the fuzzer connects to */
  FILE_SESSION,   /* a connection of the fuzzer */
  FILE_SILENT,    /* nothing ever comes: another listener, a queue of signals, a watch of folders */
  FILE_REFUSED,   /* nobody has answered connect() */
  FILE_PIPE_OUT,  /* both ends of a pipe */
  FILE_PIPE_IN,
  FILE_PAIR,      /* one of socketpair() */
  FILE_EVENTS,    /* eventfd() */
  FILE_TIMER,     /* timerfd_create() */
  FILE_EPOLL,
  FILE_RANDOM,    /* /dev/urandom */
  FILE_NETLINK,
};

/* Something that an epoll file watches. `seen`, `seen_writable`: what edge-triggered events have reported. */
struct net_watched {
  int number;
  uint32_t events, seen, seen_writable;
  epoll_data_t data;
};

struct net_file {
  enum net_kind kind;
  int domain, type, is_nonblocking;
  uint32_t uses;       /* descriptors that stand for it */
  uint32_t news;       /* counts what became readable; an edge-triggered event reports each value once */
  int slot;            /* of a session: the connection; NET_ANY_SLOT: of each message the one that it names */
  int port, has_info, is_shut, is_only_v6;
  int64_t read_limit;  /* SO_RCVTIMEO in ns; 0: none */
  struct sockaddr_storage local, remote;
  socklen_t local_length, remote_length;
  struct net_file *peer;  /* of a pipe or pair */
  uint64_t count;         /* bytes in `bytes`, or the value of an eventfd */
  uint64_t due, interval; /* of a timer, on the virtual clock; 0: it is off */
  uint8_t *bytes;
  struct net_watched *watched;
};

#define NET_ANY_SLOT (-1)

static inline int ffuzz_net_is_virtual(int number) { return number >= NET_FIRST && number < NET_FIRST + NET_MOST; }
/* NULL: the number is one of the kernel's. */
HIDDEN struct net_file *ffuzz_net_file(int number);
/* A descriptor for a new file; -1 with EMFILE. `type` may have SOCK_NONBLOCK. */
HIDDEN int ffuzz_net_open(enum net_kind kind, int domain, int type);
/* One more descriptor for a file, from `least` on; -1 with EMFILE. */
HIDDEN int ffuzz_net_number(struct net_file *file, int least);
/* The same with a number that stands for nothing. */
HIDDEN int ffuzz_net_put(struct net_file *file, int number);
/* The number stands for nothing any more. Returns the file if it was the last one. */
HIDDEN struct net_file *ffuzz_net_take_away(int number);
/* A process that forks shares what it has: its pipes stay open when we, the child, close them. */
HIDDEN void ffuzz_net_files_are_shared(void);
HIDDEN int ffuzz_net_listeners(void);
/* The earliest timer that runs; 0: none does. */
HIDDEN uint64_t ffuzz_net_next_timer(void);

#endif
