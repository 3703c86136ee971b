/* The domain `answers`: which answers a program gives, and in which order.
 *
 * An answer is what the program sends between two messages. Its class is the first group of the regular expression
 * FFUZZ_NET_ANSWERS (POSIX, extended), or the whole match without a group; if that is empty, the first number of
 * three digits in its first bytes, which is what most protocols of text call a status, else its first bytes up to a
 * blank. A pair of classes that follow each other is a key, and its value is 1. AFLNet (Pham et al., ICST 2020) builds a machine of states of such codes, with code per protocol. */
#ifndef FFUZZ_NET_ANSWERS_H
#define FFUZZ_NET_ANSWERS_H

#include <sys/uio.h>

#include "base.h"

/* Registers the domain, if the fuzzer wants it and the program has our runtime. */
HIDDEN void ffuzz_net_answers_start(void);
/* The program has sent this. */
HIDDEN void ffuzz_net_answers_add(const void *bytes, size_t length);
/* The program gets another message, or its run ends: what it has sent is one answer. `message` is what it answers. */
HIDDEN void ffuzz_net_answers_end(const uint8_t *message, size_t length);

#endif
