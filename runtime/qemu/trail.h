/* The blocks that a run has executed last: where a program that crashes is. */
#ifndef FFUZZ_QEMU_TRAIL_H
#define FFUZZ_QEMU_TRAIL_H

struct qemu_plugin_tb;

/* 1 if the fuzzer asks for it: FFUZZ_QEMU_TRAIL is the descriptor of the memory for it. */
int ffuzz_qemu_trail_start(void);
/* A block was translated. */
void ffuzz_qemu_trail_translated(struct qemu_plugin_tb *block, const void *host);

#endif
