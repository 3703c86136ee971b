/* plist: a property list, binary or XML, written in both forms. */
#include <stdint.h>
#include <stdlib.h>

#include "plist/plist.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  plist_t list = NULL;
  char *out = NULL;
  uint32_t length;
  plist_from_memory((const char *)data, (uint32_t)size, &list);
  if (!list) return 0;
  plist_to_xml(list, &out, &length);
  free(out);
  out = NULL;
  plist_to_bin(list, &out, &length);
  free(out);
  plist_free(list);
  return 0;
}
