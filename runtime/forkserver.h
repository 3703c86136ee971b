/* The fork server: returns in each child, and in a process without a fuzzer. */
#ifndef FFUZZ_FORKSERVER_H
#define FFUZZ_FORKSERVER_H

#include "base.h"

/* AFL's driver: the fork server starts before LLVMFuzzerInitialize. */
#define FFUZZ_NOT_DEFERRED_ENV "AFL_DRIVER_DONT_DEFER"

HIDDEN void ffuzz_start_server(void);

#endif
