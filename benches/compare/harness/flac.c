/* flac: a stream in memory with its tags and its sound, at most 64 Ki samples of it. */
#include <stdint.h>
#include <string.h>

#include "FLAC/stream_decoder.h"

#define MOST_SAMPLES (64u << 10)

struct memory {
  const uint8_t *data;
  size_t size, at, samples;
};

static FLAC__StreamDecoderReadStatus read_input(const FLAC__StreamDecoder *reader, FLAC__byte *buffer, size_t *bytes,
                                                void *handle) {
  struct memory *file = handle;
  (void)reader;
  if (*bytes > file->size - file->at) *bytes = file->size - file->at;
  memcpy(buffer, file->data + file->at, *bytes);
  file->at += *bytes;
  return *bytes ? FLAC__STREAM_DECODER_READ_STATUS_CONTINUE : FLAC__STREAM_DECODER_READ_STATUS_END_OF_STREAM;
}

static FLAC__StreamDecoderWriteStatus take(const FLAC__StreamDecoder *reader, const FLAC__Frame *frame,
                                           const FLAC__int32 *const sound[], void *handle) {
  struct memory *file = handle;
  (void)reader, (void)sound;
  file->samples += (size_t)frame->header.blocksize * frame->header.channels;
  return file->samples > MOST_SAMPLES ? FLAC__STREAM_DECODER_WRITE_STATUS_ABORT
                                      : FLAC__STREAM_DECODER_WRITE_STATUS_CONTINUE;
}

static void tags(const FLAC__StreamDecoder *reader, const FLAC__StreamMetadata *data, void *handle) {
  (void)reader, (void)data, (void)handle;
}

static void failed(const FLAC__StreamDecoder *reader, FLAC__StreamDecoderErrorStatus status, void *handle) {
  (void)reader, (void)status, (void)handle;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct memory file = {data, size, 0, 0};
  FLAC__StreamDecoder *reader = FLAC__stream_decoder_new();
  if (!reader) return 0;
  FLAC__stream_decoder_set_md5_checking(reader, 1);
  FLAC__stream_decoder_set_metadata_respond_all(reader);
  if (FLAC__stream_decoder_init_stream(reader, read_input, NULL, NULL, NULL, NULL, take, tags, failed, &file) ==
      FLAC__STREAM_DECODER_INIT_STATUS_OK)
    FLAC__stream_decoder_process_until_end_of_stream(reader);
  FLAC__stream_decoder_delete(reader);
  return 0;
}
