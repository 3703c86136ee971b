/* freetype: the first face of a font file; its first glyphs are loaded with hints and drawn. */
#include <stdint.h>

#include <ft2build.h>
#include FT_FREETYPE_H

#define MOST_GLYPHS 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  FT_Library library;
  FT_Face face;
  if (FT_Init_FreeType(&library)) return 0;
  if (!FT_New_Memory_Face(library, data, (FT_Long)size, 0, &face)) {
    if (face->num_fixed_sizes > 0) FT_Select_Size(face, 0);
    else FT_Set_Pixel_Sizes(face, 0, 12);
    for (FT_UInt glyph = 0; glyph < MOST_GLYPHS && glyph < (FT_UInt)face->num_glyphs; glyph++)
      FT_Load_Glyph(face, glyph, FT_LOAD_RENDER);
    FT_Get_Char_Index(face, 'A');
    FT_Done_Face(face);
  }
  FT_Done_FreeType(library);
  return 0;
}
