/* The file that a block of the guest's code belongs to. */
#ifndef FFUZZ_QEMU_MODULES_H
#define FFUZZ_QEMU_MODULES_H

#include <stdint.h>

/* A number for a place in a chosen file, the same in every start of the program; 0 in any other memory, unless the
 * program is packed: it runs code that is in no file before it looks at its input. The emulator gives that the same
 * addresses in every start. `host`: where the emulator has the code; `address`: where the guest has it. */
uint32_t ffuzz_qemu_location(const void *host, uint64_t address, int is_before_input);
/* The file of a place, and the offset in it; NULL if it is in none. */
const char *ffuzz_qemu_file(const void *host, uint64_t *offset);
/* It is in the mapping of a file, as far as was known when the last place was asked for. */
int ffuzz_qemu_is_file(uintptr_t host);
/* Files are chosen by names with colons between them, by `all`, or else it is the program alone, which has this code. */
void ffuzz_qemu_choose(const char *names, const char *without, const void *program);
/* The guest's address of the program's entry point, 0 if it is not known. `base`: where its address 0 is. */
uint64_t ffuzz_qemu_entry(uintptr_t base);

#endif
