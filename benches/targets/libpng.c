/* libpng: reads a PNG file row by row with the usual conversions; at most 2,000,000 pixels, errors
 * of checksums are ignored. */
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "png.h"

#define SIGNATURE 8
#define MOST_PIXELS 2000000u

struct input {
  const uint8_t *data;
  size_t left;
};

static void read_input(png_structp png, png_bytep out, png_size_t size) {
  struct input *input = png_get_io_ptr(png);
  if (size > input->left) png_error(png, "end of input");
  memcpy(out, input->data, size);
  input->data += size;
  input->left -= size;
}

static void on_error(png_structp png, png_const_charp text) {
  (void)text;
  longjmp(png_jmpbuf(png), 1);
}

static void on_warning(png_structp png, png_const_charp text) {
  (void)png;
  (void)text;
}

static void read_image(png_structp png, png_infop info, png_bytep *row) {
  png_read_info(png, info);
  png_uint_32 width = png_get_image_width(png, info), height = png_get_image_height(png, info);
  if (width == 0 || height == 0 || (uint64_t)width * height > MOST_PIXELS) return;

  png_set_expand(png);
  png_set_gray_to_rgb(png);
  png_set_scale_16(png);
  png_set_packing(png);
  int passes = png_set_interlace_handling(png);
  png_read_update_info(png, info);

  *row = png_malloc(png, png_get_rowbytes(png, info));
  for (int pass = 0; pass < passes; pass++)
    for (png_uint_32 y = 0; y < height; y++) png_read_row(png, *row, NULL);
  png_read_end(png, info);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < SIGNATURE || png_sig_cmp(data, 0, SIGNATURE) != 0) return 0;
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, NULL, on_error, on_warning);
  if (png == NULL) return 0;
  png_infop info = png_create_info_struct(png);
  png_bytep volatile row = NULL;
  struct input input = {data + SIGNATURE, size - SIGNATURE};

  if (info != NULL && setjmp(png_jmpbuf(png)) == 0) {
    png_set_crc_action(png, PNG_CRC_QUIET_USE, PNG_CRC_QUIET_USE);
    png_set_read_fn(png, &input, read_input);
    png_set_sig_bytes(png, SIGNATURE);
    read_image(png, info, (png_bytep *)&row);
  }
  png_free(png, row);
  png_destroy_read_struct(&png, &info, NULL);
  return 0;
}
