/* harfbuzz: the glyphs of two texts in a font, one of which is the end of the font. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "hb.h"
#include "hb-ot.h"

#define TAIL 16

static void shape(hb_font_t *font, const uint32_t *text, int length) {
  hb_buffer_t *buffer = hb_buffer_create();
  hb_buffer_add_utf32(buffer, text, length, 0, length);
  hb_buffer_guess_segment_properties(buffer);
  hb_shape(font, buffer, NULL, 0);
  unsigned count;
  hb_glyph_info_t *glyphs = hb_buffer_get_glyph_infos(buffer, &count);
  for (unsigned index = 0; index < count; index++) {
    hb_glyph_extents_t extents;
    hb_font_get_glyph_extents(font, glyphs[index].codepoint, &extents);
  }
  hb_buffer_destroy(buffer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const uint32_t words[] = {'A',   'B', 'f', 'i', ' ',    '1',    0x301,  0x5d0, 0x627, 0x628,
                                   0x64e, 'D', 'E', 'X', 0x0915, 0x094d, 0x0937, 0xe01, 0x1000};
  uint32_t tail[TAIL] = {0};
  hb_blob_t *blob = hb_blob_create((const char *)data, (unsigned)size, HB_MEMORY_MODE_READONLY, NULL, NULL);
  hb_face_t *face = hb_face_create(blob, 0);
  hb_font_t *font = hb_font_create(face);
  hb_font_set_scale(font, 12, 12);
  shape(font, words, sizeof words / sizeof *words);
  size_t used = size < sizeof tail ? size : sizeof tail;
  memcpy(tail, data + size - used, used);
  shape(font, tail, TAIL);
  hb_font_destroy(font);
  hb_face_destroy(face);
  hb_blob_destroy(blob);
  return 0;
}
