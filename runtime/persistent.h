/* The persistent loop. */
#ifndef FFUZZ_PERSISTENT_H
#define FFUZZ_PERSISTENT_H

int __afl_persistent_loop(unsigned int most);

#endif
