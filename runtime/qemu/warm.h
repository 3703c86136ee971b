/* Code that a child has translated is translated by the fork server, too, so that later children find it. */
#ifndef FFUZZ_QEMU_WARM_H
#define FFUZZ_QEMU_WARM_H

#include <stdint.h>

struct qemu_plugin_tb;

/* Before the fork server starts. `is_32_bit`: the size of the guest's addresses. */
void ffuzz_qemu_warm_start(int is_32_bit);
/* A block was translated. */
void ffuzz_qemu_warm_translated(struct qemu_plugin_tb *translation, const void *host);
/* This process is a child of the fork server. */
void ffuzz_qemu_warm_child(void);
/* The child has ended. */
void ffuzz_qemu_warm_up(void);

#endif
