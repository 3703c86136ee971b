/* What a program exports that was linked with -rdynamic: names of a module's functions. */
#include <stdlib.h>

int mutate(void *data, char *buffer, unsigned long size) { (void)data, (void)buffer, (void)size, abort(); }
void *create(char *options, char *state, char *input, unsigned long length) {
  (void)options, (void)state, (void)input, (void)length, abort();
}
