/* The fork server: returns in each child, and in a process without a fuzzer. */
#ifndef FFUZZ_FORKSERVER_H
#define FFUZZ_FORKSERVER_H

#include "base.h"

HIDDEN void ffuzz_start_server(void);

#endif
