/* A fork server of AFL's first protocol, within the emulator. */
#ifndef FFUZZ_QEMU_SERVER_H
#define FFUZZ_QEMU_SERVER_H

#include <sys/types.h>

/* Returns in each child, or at once if nobody listens. The emulator's own fork is for calls at which it waits for
 * nothing; `raw` is for any other place. */
void ffuzz_qemu_serve(int raw);

/* Bytes of the coverage map, a power of two, and the map; NULL if there is none. */
unsigned char *ffuzz_qemu_map(size_t *size);

#endif
