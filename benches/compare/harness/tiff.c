/* tiff: an image in memory; its tags, and its pixels up to 256 KiB. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tiffio.h"

#define LARGEST_IMAGE (64u << 10)
#define MOST_DIRECTORIES 4

struct memory {
  const uint8_t *data;
  toff_t size, at;
};

static tsize_t read_input(thandle_t handle, void *buffer, tsize_t bytes) {
  struct memory *file = handle;
  toff_t left = file->at < file->size ? file->size - file->at : 0;
  if ((toff_t)bytes > left) bytes = (tsize_t)left;
  memcpy(buffer, file->data + file->at, (size_t)bytes);
  file->at += (toff_t)bytes;
  return bytes;
}

static tsize_t write_nowhere(thandle_t handle, void *buffer, tsize_t bytes) {
  (void)handle, (void)buffer;
  return bytes;
}

static toff_t seek(thandle_t handle, toff_t offset, int from) {
  struct memory *file = handle;
  toff_t base = from == SEEK_SET ? 0 : from == SEEK_CUR ? file->at : file->size;
  return file->at = base + offset;
}

static int close_input(thandle_t handle) { return (void)handle, 0; }

static toff_t size_of(thandle_t handle) { return ((struct memory *)handle)->size; }

static int no_map(thandle_t handle, void **base, toff_t *size) { return (void)handle, (void)base, (void)size, 0; }

static void no_unmap(thandle_t handle, void *base, toff_t size) { (void)handle, (void)base, (void)size; }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct memory file = {data, size, 0};
  TIFFSetErrorHandler(NULL);
  TIFFSetWarningHandler(NULL);
  TIFF *image = TIFFClientOpen("input", "rm", &file, read_input, write_nowhere, seek, close_input, size_of, no_map,
                               no_unmap);
  if (!image) return 0;
  int left = MOST_DIRECTORIES;
  do {
    uint32_t width = 0, height = 0;
    TIFFGetField(image, TIFFTAG_IMAGEWIDTH, &width);
    TIFFGetField(image, TIFFTAG_IMAGELENGTH, &height);
    if (width == 0 || height == 0 || (uint64_t)width * height > LARGEST_IMAGE) continue;
    uint32_t *pixels = calloc((size_t)width * height, sizeof *pixels);
    if (pixels) TIFFReadRGBAImage(image, width, height, pixels, 0);
    free(pixels);
  } while (--left && TIFFReadDirectory(image));
  TIFFClose(image);
  return 0;
}
