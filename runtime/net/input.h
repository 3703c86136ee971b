/* The input: a list of messages, each a little-endian word and its bytes. The lower 24 bits of the word are the number
 * of bytes, the upper 8 the number of the connection, below 128. That is the replay format of AFLNet where there is
 * one connection. A file whose first word does not fit it is one message.
 *
 * The first question for a message is the first use of the input: the snapshot of the runtime is taken there. If all
 * inputs of a process begin with the same messages, these are part of its start, and it is taken when the bytes of the
 * message behind them are asked for. Of that one only the connection is known before. */
#ifndef FFUZZ_NET_INPUT_H
#define FFUZZ_NET_INPUT_H

#include "net/message.h"

/* Keeps descriptor 0, where the fuzzer puts the input, at NET_INPUT; the program gets an empty file. */
HIDDEN void ffuzz_net_keep_input(void);
HIDDEN int ffuzz_net_is_read(void);
/* The present message; NULL behind the last. Its bytes may still be unknown. */
HIDDEN const struct net_message *ffuzz_net_present(void);
/* The same with its bytes. */
HIDDEN const struct net_message *ffuzz_net_whole(void);
HIDDEN void ffuzz_net_next(void);

#endif
