/* What the fuzzer, or a user, asks of the stand-in: the variable FFUZZ_NET. */
#ifndef FFUZZ_NET_OPTIONS_H
#define FFUZZ_NET_OPTIONS_H

#include "base.h"

#define PUBLIC __attribute__((visibility("default")))

enum role { ROLE_NONE, ROLE_SERVER, ROLE_CLIENT };
enum protocol { TCP, UDP, UNIX };

struct net_options {
  enum role role;
  enum protocol protocol;
  int port; /* 0: the first one that is used */
  char path[108];
};

HIDDEN extern struct net_options ffuzz_net;

/* Reads a value of FFUZZ_NET: tcp:PORT, udp:PORT, unix:PATH, tcp-client[:PORT], udp-client[:PORT]. Anything else
 * leaves the stand-in without work. */
HIDDEN void ffuzz_net_read_options(const char *text);

#endif
