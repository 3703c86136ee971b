/* What programs ask the kernel about its interfaces: there is the loopback, and nothing else. */
#ifndef FFUZZ_NET_NETLINK_H
#define FFUZZ_NET_NETLINK_H

#include <sys/uio.h>

#include "net/files.h"

HIDDEN void ffuzz_net_ask_netlink(struct net_file *file, const struct iovec *from, int parts);
/* The answer (rtnetlink(7)); -1 with EAGAIN if nothing was asked. `whole`: its bytes. */
HIDDEN ssize_t ffuzz_net_netlink_answer(struct net_file *file, const struct iovec *to, int parts, int flags,
                                        uint32_t *whole);

#endif
