/* nanosvg: a drawing, and its pixels in 64 rows of 64. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Some fields are read before they are written. */
#define malloc(bytes) calloc(1, bytes)
#define NANOSVG_IMPLEMENTATION
#include "nanosvg.h"
#define NANOSVGRAST_IMPLEMENTATION
#include "nanosvgrast.h"

#define SIDE 64
#define MOST_SHAPES 32
#define FARTHEST 1e4f

/* The time of a drawing grows with its coordinates. */
static int is_small(const NSVGimage *image) {
  int count = 0;
  for (const NSVGshape *shape = image->shapes; shape; shape = shape->next) {
    for (int side = 0; side < 4; side++)
      if (!(fabsf(shape->bounds[side]) < FARTHEST)) return 0;
    if (!(fabsf(shape->strokeWidth) < FARTHEST) || ++count > MOST_SHAPES) return 0;
  }
  return 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static unsigned char pixels[SIDE * SIDE * 4];
  char *text = malloc(size + 1);
  if (!text) return 0;
  memcpy(text, data, size);
  text[size] = 0;
  NSVGimage *image = nsvgParse(text, "px", 96);
  free(text);
  if (!image) return 0;
  NSVGrasterizer *painter = is_small(image) ? nsvgCreateRasterizer() : NULL;
  if (painter) {
    nsvgRasterize(painter, image, 0, 0, 1, pixels, SIDE, SIDE, SIDE * 4);
    nsvgDeleteRasterizer(painter);
  }
  nsvgDelete(image);
  return 0;
}
