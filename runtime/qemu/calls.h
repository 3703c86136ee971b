/* System calls by which a program comes to its input. */
#ifndef FFUZZ_QEMU_CALLS_H
#define FFUZZ_QEMU_CALLS_H

#include <stdint.h>

/* The processor of the guest by QEMU's name; 0 if its system calls are not known. */
int ffuzz_qemu_knows_calls(const char *target);
/* `base`: where the emulator has the guest's address 0. */
int ffuzz_qemu_reaches_input(int64_t number, const uint64_t arguments[5], uintptr_t base);

#endif
