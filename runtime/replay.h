/* Inputs that a program started by hand gets before its own. */
#ifndef FFUZZ_REPLAY_H
#define FFUZZ_REPLAY_H

#include "base.h"

HIDDEN unsigned int ffuzz_replay_count(void);
HIDDEN int ffuzz_replay_path(char *path, size_t room, unsigned int number);
HIDDEN void ffuzz_replay_input(unsigned int number, unsigned int count);

#endif
