/* libxmp: a module of tracker music, and eight frames of its sound. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "xmp.h"

#define MOST_FRAMES 8
#define LOWEST_RATE 4000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  /* Some effects are random. */
  srand(1);
  xmp_context player = xmp_create_context();
  if (!player) return 0;
  if (size > 0 && xmp_load_module_from_memory(player, (void *)data, (long)size) == 0) {
    if (xmp_start_player(player, LOWEST_RATE, XMP_FORMAT_MONO) == 0) {
      for (int left = MOST_FRAMES; left && xmp_play_frame(player) == 0; left--) continue;
      xmp_end_player(player);
    }
    xmp_release_module(player);
  }
  xmp_free_context(player);
  return 0;
}
