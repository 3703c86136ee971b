/* mspack: a cabinet in memory; all its files are extracted, at most 256 KiB of each. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "mspack.h"

#define MOST_FILES 32
#define LARGEST_OUTPUT (256u << 10)

/* The input, or a file that is written to nowhere. */
struct memory {
  const uint8_t *data;
  off_t size, at;
};

static const uint8_t *input;
static size_t input_size;

static struct mspack_file *open_file(struct mspack_system *self, const char *name, int mode) {
  (void)self;
  if (mode == MSPACK_SYS_OPEN_READ && strcmp(name, "input")) return NULL;
  struct memory *file = calloc(1, sizeof *file);
  if (file && mode == MSPACK_SYS_OPEN_READ) file->data = input, file->size = (off_t)input_size;
  return (struct mspack_file *)file;
}

static void close_file(struct mspack_file *file) { free(file); }

/* libmspack 0.11 goes on without a file that it could not open. */
static int read_file(struct mspack_file *handle, void *buffer, int bytes) {
  struct memory *file = (struct memory *)handle;
  if (!file) return -1;
  off_t left = file->size - file->at;
  if (bytes > left) bytes = (int)left;
  memcpy(buffer, file->data + file->at, (size_t)bytes);
  file->at += bytes;
  return bytes;
}

static int write_file(struct mspack_file *handle, void *buffer, int bytes) {
  struct memory *file = (struct memory *)handle;
  (void)buffer;
  file->at += bytes;
  return file->at > LARGEST_OUTPUT ? -1 : bytes;
}

static int seek_file(struct mspack_file *handle, off_t offset, int mode) {
  struct memory *file = (struct memory *)handle;
  off_t base = mode == MSPACK_SYS_SEEK_START ? 0 : mode == MSPACK_SYS_SEEK_CUR ? file->at : file->size;
  if (base + offset < 0 || base + offset > file->size) return -1;
  file->at = base + offset;
  return 0;
}

static off_t tell_file(struct mspack_file *handle) { return ((struct memory *)handle)->at; }

static void message(struct mspack_file *file, const char *format, ...) { (void)file, (void)format; }

static void *give(struct mspack_system *self, size_t bytes) {
  (void)self;
  return malloc(bytes);
}

static void copy(void *from, void *to, size_t bytes) { memcpy(to, from, bytes); }

static struct mspack_system in_memory = {open_file, close_file, read_file, write_file, seek_file, tell_file,
                                         message,   give,       free,      copy,       NULL};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  input = data, input_size = size;
  struct mscab_decompressor *reader = mspack_create_cab_decompressor(&in_memory);
  if (!reader) return 0;
  struct mscabd_cabinet *cabinet = reader->open(reader, "input");
  if (cabinet) {
    int count = 0;
    for (struct mscabd_file *file = cabinet->files; file && count < MOST_FILES; file = file->next, count++)
      reader->extract(reader, file, "output");
    reader->close(reader, cabinet);
  }
  mspack_destroy_cab_decompressor(reader);
  return 0;
}
