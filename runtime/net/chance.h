/* What differs between two runs of a program without anybody's doing: random numbers and the time. Here they are the
 * same in each run. */
#ifndef FFUZZ_NET_CHANCE_H
#define FFUZZ_NET_CHANCE_H

#include "base.h"

/* Fills memory from a generator that begins with the same seed in each process (xorshift64; Marsaglia, 2003). */
HIDDEN void ffuzz_net_random(void *to, size_t length);
/* The virtual clock, in nanoseconds since the process began. Each question moves it by a microsecond. */
HIDDEN uint64_t ffuzz_net_now(void);
HIDDEN void ffuzz_net_move_clock(uint64_t nanoseconds);

#endif
