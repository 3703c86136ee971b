/* A fork server that the program itself starts. */
#ifndef FFUZZ_MANUAL_H
#define FFUZZ_MANUAL_H

void __afl_manual_init(void);

#endif
