/* What sending needs of sockets. */
#ifndef FFUZZ_NET_SOCKETS_H
#define FFUZZ_NET_SOCKETS_H

#include "net/files.h"

/* A socket of datagrams that is not connected sends to an address: for a client the session may begin there. */
HIDDEN void ffuzz_net_sends_to(struct net_file *file, const struct sockaddr *address, socklen_t length);

#endif
