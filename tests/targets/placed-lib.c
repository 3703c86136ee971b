/* See placed.c. */
int is_loaded(void) { return 1; }
