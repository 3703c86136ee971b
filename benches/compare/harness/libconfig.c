/* libconfig: a text of settings, looked up and written again. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <stdio.h>

#include "libconfig.h"

/* What the library opens a file with: an input includes none. */
FILE *no_file(const char *path, const char *mode) {
  (void)path, (void)mode;
  return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static char output[64 << 10];
  char *text = malloc(size + 1);
  if (!text) return 0;
  memcpy(text, data, size);
  text[size] = 0;
  config_t config;
  config_init(&config);
  if (config_read_string(&config, text)) {
    const char *word;
    int number;
    config_lookup_string(&config, "a.b", &word);
    config_lookup_int(&config, "a.[0].c", &number);
    FILE *out = fmemopen(output, sizeof output, "w");
    if (out) {
      config_write(&config, out);
      fclose(out);
    }
  }
  config_destroy(&config);
  free(text);
  return 0;
}
