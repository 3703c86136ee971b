/* Recording: the messages come from a real peer and not from a file, and are written down. The program has the same time
 * and the same random numbers as in every run, so that it gives the same answers when they come from the file: a
 * handshake is replayed bit for bit.
 *
 * FFUZZ_NET_RECORD=1 says that the fuzzer has opened NET_RECORD, where the list of messages goes, and for a server
 * NET_REAL, a socket of the kernel that clients connect or send to. A client's connections are made anew. */
#ifndef FFUZZ_NET_RECORD_H
#define FFUZZ_NET_RECORD_H

#include "net/files.h"
#include "net/message.h"

HIDDEN void ffuzz_net_record_starts(void);
HIDDEN int ffuzz_net_records(void);
/* A peer for the connection that the program has just accepted, or made to the address of its file. */
HIDDEN void ffuzz_net_record_opens(const struct net_file *file, int slot);
/* Waits for the next message. 0: there is none. Its connection is the number of its slot. */
HIDDEN int ffuzz_net_record_next(struct net_message *message);
HIDDEN void ffuzz_net_record_answer(int slot, const void *bytes, size_t length);
HIDDEN void ffuzz_net_record_closes(int slot);

#endif
