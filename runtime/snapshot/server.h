/* What a server does before it waits for its first message (ffuzz --net). */
#ifndef FFUZZ_SNAPSHOT_SERVER_H
#define FFUZZ_SNAPSHOT_SERVER_H

#include "snapshot/state.h"

#if FFUZZ_HAS_SNAPSHOTS
/* Whether the prologue makes this call, in addition to those of all programs. */
HIDDEN int ffuzz_server_keeps(const struct call *c);
/* Whether it makes the process another user's. */
HIDDEN int ffuzz_server_changes_user(const struct call *c);
/* Whether its result is a descriptor of the program that the prologue may use from then on. */
HIDDEN int ffuzz_server_opens(const struct call *c);
#endif

#endif
