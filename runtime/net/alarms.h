/* Alarms of alarm() and setitimer(ITIMER_REAL). */
#ifndef FFUZZ_NET_ALARMS_H
#define FFUZZ_NET_ALARMS_H

#include "base.h"

/* When the next one is due, on the virtual clock; 0: there is none. */
HIDDEN uint64_t ffuzz_net_next_alarm(void);
/* Calls the handler of one that is due. 0: it would end the program. */
HIDDEN int ffuzz_net_alarm_rings(void);

#endif
