/* zstd: frames in memory, at most 256 KiB of what they hold; windows have at most 1 MiB. */
#include <stdint.h>

#include "zstd.h"

#define LARGEST_OUTPUT (256u << 10)
#define LARGEST_WINDOW 20

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static uint8_t output[16 << 10];
  ZSTD_DCtx *reader = ZSTD_createDCtx();
  if (!reader) return 0;
  ZSTD_DCtx_setParameter(reader, ZSTD_d_windowLogMax, LARGEST_WINDOW);
  ZSTD_inBuffer in = {data, size, 0};
  size_t total = 0, before, result;
  do {
    ZSTD_outBuffer out = {output, sizeof output, 0};
    before = in.pos;
    result = ZSTD_decompressStream(reader, &out, &in);
    total += out.pos;
    if (ZSTD_isError(result) || (out.pos == 0 && in.pos == before)) break;
  } while (total < LARGEST_OUTPUT);
  ZSTD_freeDCtx(reader);
  return 0;
}
