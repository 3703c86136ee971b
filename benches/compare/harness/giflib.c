/* giflib: the records of a file in memory, and lines of at most 256 KiB of pixels. */
#include <stdint.h>
#include <string.h>

#include "gif_lib.h"

#define MOST_PIXELS (256u << 10)

struct memory {
  const uint8_t *data;
  size_t size, at;
};

static int read_input(GifFileType *image, GifByteType *buffer, int bytes) {
  struct memory *file = image->UserData;
  if ((size_t)bytes > file->size - file->at) bytes = (int)(file->size - file->at);
  memcpy(buffer, file->data + file->at, (size_t)bytes);
  file->at += (size_t)bytes;
  return bytes;
}

static int pixels(GifFileType *image, size_t *left) {
  static GifPixelType line[64 << 10];
  if (DGifGetImageDesc(image) == GIF_ERROR) return 0;
  int width = image->Image.Width, height = image->Image.Height;
  if (width <= 0 || height <= 0 || (size_t)width * (size_t)height > *left) return 0;
  *left -= (size_t)width * (size_t)height;
  while (height--)
    if (DGifGetLine(image, line, width) == GIF_ERROR) return 0;
  return 1;
}

static int extension(GifFileType *image) {
  GifByteType *bytes;
  GraphicsControlBlock block;
  int code;
  if (DGifGetExtension(image, &code, &bytes) == GIF_ERROR) return 0;
  if (code == GRAPHICS_EXT_FUNC_CODE && bytes) DGifExtensionToGCB(bytes[0], bytes + 1, &block);
  while (bytes)
    if (DGifGetExtensionNext(image, &bytes) == GIF_ERROR) return 0;
  return 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct memory file = {data, size, 0};
  GifRecordType type;
  size_t left = MOST_PIXELS;
  int code, goes_on = 1;
  GifFileType *image = DGifOpen(&file, read_input, &code);
  if (!image) return 0;
  while (goes_on && DGifGetRecordType(image, &type) == GIF_OK) {
    if (type == IMAGE_DESC_RECORD_TYPE) goes_on = pixels(image, &left);
    else if (type == EXTENSION_RECORD_TYPE) goes_on = extension(image);
    else break;
  }
  DGifCloseFile(image, &code);
  return 0;
}
