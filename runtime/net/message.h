/* One message of a session. */
#ifndef FFUZZ_NET_MESSAGE_H
#define FFUZZ_NET_MESSAGE_H

#include "base.h"

#define NET_CONNECTIONS 128

struct net_message {
  const uint8_t *bytes; /* NULL: not known yet */
  uint32_t length, connection;
};

#endif
