/* brotli: a stream, at most 256 KiB of what it holds. */
#include <stdint.h>

#include "brotli/decode.h"

#define LARGEST_OUTPUT (256u << 10)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static uint8_t output[4096];
  BrotliDecoderState *state = BrotliDecoderCreateInstance(NULL, NULL, NULL);
  if (!state) return 0;
  size_t total = 0;
  BrotliDecoderResult result;
  do {
    uint8_t *out = output;
    size_t left = sizeof output;
    result = BrotliDecoderDecompressStream(state, &size, &data, &left, &out, &total);
  } while (result == BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT && total < LARGEST_OUTPUT);
  BrotliDecoderDestroyInstance(state);
  return 0;
}
