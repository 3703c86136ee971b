/* Streams of libc on our files: libc reads and writes by functions that no symbol reaches. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "net/files.h"
#include "net/kernel.h"
#include "net/options.h"

static ssize_t read_stream(void *file, char *to, size_t length) { return read((int)(intptr_t)file, to, length); }
static ssize_t write_stream(void *file, const char *from, size_t length) {
  return write((int)(intptr_t)file, from, length);
}
static int close_stream(void *file) { return close((int)(intptr_t)file); }

PUBLIC FILE *fdopen(int number, const char *mode) {
  static FILE *(*real)(int, const char *);
  cookie_io_functions_t functions = {read_stream, write_stream, NULL, close_stream};
  if (ffuzz_net_file(number)) {
    FILE *stream = fopencookie((void *)(intptr_t)number, mode, functions);
    if (stream) stream->_fileno = number;
    return stream;
  }
  if (!real) real = (FILE * (*)(int, const char *)) dlsym(RTLD_NEXT, "fdopen");
  return real(number, mode);
}

static int is_random(const char *path) { return !strcmp(path, "/dev/urandom") || !strcmp(path, "/dev/random"); }

static FILE *open_stream(const char *name, const char *path, const char *mode) {
  if (ffuzz_net.role && is_random(path)) {
    int number = open(path, O_RDONLY);
    return number < 0 ? NULL : fdopen(number, mode);
  }
  FILE *(*real)(const char *, const char *) = (FILE * (*)(const char *, const char *)) dlsym(RTLD_NEXT, name);
  return real(path, mode);
}

PUBLIC FILE *fopen(const char *path, const char *mode) { return open_stream("fopen", path, mode); }
PUBLIC FILE *fopen64(const char *path, const char *mode) { return open_stream("fopen64", path, mode); }
