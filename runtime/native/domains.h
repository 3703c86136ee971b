/* Domains of a program without source, if the fuzzer asks for them. */
#ifndef FFUZZ_NATIVE_DOMAINS_H
#define FFUZZ_NATIVE_DOMAINS_H

#include "base.h"

/* src/inspect/counted.rs: their names, separated by commas. */
#define FFUZZ_DOMAINS_ENV "FFUZZ_DOMAINS"

/* Before the fuzzer is told the layout. */
HIDDEN void ffuzz_native_domains_start(void);

#endif
