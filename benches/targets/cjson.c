/* cJSON: byte 0 chooses (bit 0: the text must end with a NUL, bit 1: formatted print, bit 2:
 * minify), the rest is the text. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cJSON.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 1) return 0;
  uint8_t options = data[0];
  char *text = malloc(size);
  if (text == NULL) return 0;
  memcpy(text, data + 1, size - 1);
  text[size - 1] = '\0';

  cJSON *json = cJSON_ParseWithOpts(text, NULL, options & 1);
  if (json != NULL) {
    free(options & 2 ? cJSON_Print(json) : cJSON_PrintUnformatted(json));
    cJSON_Delete(json);
  }
  if (options & 4) cJSON_Minify(text);
  free(text);
  return 0;
}
