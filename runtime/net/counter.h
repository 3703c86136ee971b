/* The counter of the processor (rdtsc) is a source of random numbers for some libraries. Here it is the time of the
 * stand-in: the instruction faults (PR_SET_TSC), and the handler of the fault answers it. */
#ifndef FFUZZ_NET_COUNTER_H
#define FFUZZ_NET_COUNTER_H

#include "base.h"

HIDDEN void ffuzz_net_counter_starts(void);

#endif
