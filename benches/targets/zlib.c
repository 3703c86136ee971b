/* zlib: bits 0 and 1 of byte 0 choose the format (raw, zlib, gzip), the other bits the size of a
 * chunk of input, the rest is a stream to inflate. */
#include <stdint.h>
#include <string.h>

#include "zlib.h"

#define LARGEST_OUTPUT (256u << 10)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const int window_bits[] = {-15, 15, 31};
  static uint8_t output[4096];
  if (size < 1) return 0;
  size_t chunk = 1 + 16 * (size_t)(data[0] >> 2);

  z_stream stream;
  memset(&stream, 0, sizeof stream);
  if (inflateInit2(&stream, window_bits[(data[0] & 3) % 3]) != Z_OK) return 0;
  size_t at = 1;
  int result = Z_OK;
  while (result == Z_OK && at < size && stream.total_out < LARGEST_OUTPUT) {
    size_t given = size - at < chunk ? size - at : chunk;
    stream.next_in = (uint8_t *)data + at;
    stream.avail_in = (uInt)given;
    do {
      stream.next_out = output;
      stream.avail_out = sizeof output;
      result = inflate(&stream, Z_NO_FLUSH);
    } while (result == Z_OK && stream.avail_out == 0 && stream.total_out < LARGEST_OUTPUT);
    at += given - stream.avail_in;
    if (result == Z_BUF_ERROR && stream.avail_in == 0) result = Z_OK;
  }
  inflateEnd(&stream);
  return 0;
}
