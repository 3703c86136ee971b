/* The transcript: what was seen of a session, for the fuzzer's tools. One record for each event, written at once to
 * the descriptor NET_TRANSCRIPT if the fuzzer has opened it (FFUZZ_NET_TRANSCRIPT), so that a crash loses nothing.
 * src/exec/net/transcript.rs reads it. */
#ifndef FFUZZ_NET_TRANSCRIPT_H
#define FFUZZ_NET_TRANSCRIPT_H

#include "base.h"

enum net_event {
  NET_LISTENS = 1, /* at a port, or with a path as text; `protocol` in `connection` */
  NET_ACCEPTED,    /* a connection, from the listener that --net means */
  NET_CONNECTS,    /* to a port; the text is an address or a path */
  NET_OPENED,      /* a connection of a client to us */
  NET_TAKEN,       /* a message: the text is what the program has received of it */
  NET_ANSWER,      /* what the program has sent in one call */
  NET_END_SEEN,    /* the program was told that a connection is closed */
  NET_CLOSED,      /* by the program */
  NET_REFUSED,     /* a call that cannot be stood in for; the text is its name */
  NET_RUN_ENDS,    /* the program waits, and nothing can come; the text is the call */
  NET_ANSWERS,     /* two answers that follow each other, as text; their key in `port` */
};

struct net_record {
  uint32_t length; /* of the text behind it */
  uint8_t kind;    /* enum net_event */
  uint8_t connection;
  uint16_t port;
};

HIDDEN void ffuzz_net_transcript_starts(void);
HIDDEN void ffuzz_net_note(enum net_event kind, int connection, int port, const void *text, size_t length);
HIDDEN void ffuzz_net_note_word(enum net_event kind, const char *word);

#endif
