/* See writes.h. The functions are those of llvm-passes/waypoints-out-pass.cc. */
#define _GNU_SOURCE
#include "native/writes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "native/callers.h"

/* runtime/domains/ has them. */
void __ffuzz_out_wrote(uint32_t key, int64_t items, int64_t size);
void __ffuzz_out_character(uint32_t key, int64_t result);
void __ffuzz_out_text(uint32_t key, const char *text, uint32_t more, int64_t result);

#define KEY ffuzz_caller_key(__builtin_return_address(0))

static int64_t wrote(uint32_t key, int64_t items, int64_t size) {
  int error = errno;
  if (key) __ffuzz_out_wrote(key, items, size);
  errno = error;
  return items;
}

static int character(uint32_t key, int result) {
  if (key) __ffuzz_out_character(key, result);
  return result;
}

static int text(uint32_t key, const char *text, uint32_t more, int result) {
  if (key) __ffuzz_out_text(key, text, more, result);
  return result;
}

/* Those that return the number of bytes. */
#define BYTES(TYPE, NAME, PARAMETERS, ARGUMENTS) \
  static TYPE our_##NAME PARAMETERS { return (TYPE)wrote(KEY, NAME ARGUMENTS, 1); }

BYTES(ssize_t, write, (int fd, const void *from, size_t size), (fd, from, size))
BYTES(ssize_t, pwrite, (int fd, const void *from, size_t size, off_t at), (fd, from, size, at))
BYTES(ssize_t, writev, (int fd, const struct iovec *parts, int count), (fd, parts, count))
BYTES(ssize_t, pwritev, (int fd, const struct iovec *parts, int count, off_t at), (fd, parts, count, at))
BYTES(ssize_t, send, (int fd, const void *from, size_t size, int flags), (fd, from, size, flags))
BYTES(ssize_t, sendto, (int fd, const void *from, size_t size, int flags, const struct sockaddr *to, socklen_t length),
      (fd, from, size, flags, to, length))
BYTES(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags))
BYTES(ssize_t, sendfile, (int to, int from, off_t *at, size_t size), (to, from, at, size))
BYTES(ssize_t, splice, (int from, off64_t *at, int to, off64_t *to_at, size_t size, unsigned flags),
      (from, at, to, to_at, size, flags))
BYTES(int, vprintf, (const char *format, va_list list), (format, list))
BYTES(int, vfprintf, (FILE *to, const char *format, va_list list), (to, format, list))
BYTES(int, vdprintf, (int fd, const char *format, va_list list), (fd, format, list))

/* Functions of programs that were compiled with _FORTIFY_SOURCE. */
int __vprintf_chk(int flag, const char *format, va_list list);
int __vfprintf_chk(FILE *to, int flag, const char *format, va_list list);
int __vdprintf_chk(int fd, int flag, const char *format, va_list list);
BYTES(int, __vprintf_chk, (int flag, const char *format, va_list list), (flag, format, list))
BYTES(int, __vfprintf_chk, (FILE * to, int flag, const char *format, va_list list), (to, flag, format, list))
BYTES(int, __vdprintf_chk, (int fd, int flag, const char *format, va_list list), (fd, flag, format, list))

#define FORMATTED(NAME, PARAMETERS, CALL)   \
  static int our_##NAME PARAMETERS {        \
    uint32_t key = KEY;                     \
    va_list list;                           \
    va_start(list, format);                 \
    int result = (int)wrote(key, CALL, 1);  \
    va_end(list);                           \
    return result;                          \
  }

FORMATTED(printf, (const char *format, ...), vprintf(format, list))
FORMATTED(fprintf, (FILE * to, const char *format, ...), vfprintf(to, format, list))
FORMATTED(dprintf, (int fd, const char *format, ...), vdprintf(fd, format, list))
FORMATTED(__printf_chk, (int flag, const char *format, ...), __vprintf_chk(flag, format, list))
FORMATTED(__fprintf_chk, (FILE * to, int flag, const char *format, ...), __vfprintf_chk(to, flag, format, list))
FORMATTED(__dprintf_chk, (int fd, int flag, const char *format, ...), __vdprintf_chk(fd, flag, format, list))

static size_t our_fwrite(const void *from, size_t size, size_t count, FILE *to) {
  uint32_t key = KEY;
  return (size_t)wrote(key, (int64_t)fwrite(from, size, count, to), (int64_t)size);
}

static size_t our_fwrite_unlocked(const void *from, size_t size, size_t count, FILE *to) {
  uint32_t key = KEY;
  return (size_t)wrote(key, (int64_t)(fwrite_unlocked)(from, size, count, to), (int64_t)size);
}

static int our_fputs(const char *line, FILE *to) { return text(KEY, line, 0, fputs(line, to)); }

static int our_fputs_unlocked(const char *line, FILE *to) { return text(KEY, line, 0, fputs_unlocked(line, to)); }

static int our_puts(const char *line) { return text(KEY, line, 1, puts(line)); }

static int our_putc(int c, FILE *to) { return character(KEY, putc(c, to)); }

static int our_putc_unlocked(int c, FILE *to) { return character(KEY, (putc_unlocked)(c, to)); }

static int our_putchar(int c) { return character(KEY, putchar(c)); }

static int our_putchar_unlocked(int c) { return character(KEY, (putchar_unlocked)(c)); }

/* C++'s streams do not say how much they have written. */
typedef void *stream_function(void *, const char *, long);
static stream_function *real_write, *real_insert;

static void *our_stream_write(void *stream, const char *from, long size) {
  wrote(KEY, size, 1);
  return real_write(stream, from, size);
}

static void *our_stream_insert(void *stream, const char *from, long size) {
  wrote(KEY, size, 1);
  return real_insert(stream, from, size);
}

#define C(NAME) {#NAME, our_##NAME, NULL}

static const struct replacement functions[] = {
    C(write),         C(pwrite),          C(writev),        C(pwritev),        C(send),
    C(sendto),        C(sendmsg),         C(sendfile),      C(splice),         C(printf),
    C(fprintf),       C(dprintf),         C(vprintf),       C(vfprintf),       C(vdprintf),
    C(__printf_chk),  C(__fprintf_chk),   C(__dprintf_chk), C(__vprintf_chk),  C(__vfprintf_chk),
    C(__vdprintf_chk), C(fwrite),         C(fwrite_unlocked), C(fputs),        C(fputs_unlocked),
    C(puts),          C(putc),            C(putc_unlocked), C(putchar),        C(putchar_unlocked),
    {"pwrite64", our_pwrite, NULL},
    {"fputc", our_putc, NULL},
    {"_IO_putc", our_putc, NULL},
    {"fputc_unlocked", our_putc_unlocked, NULL},
    {"_ZNSo5writeEPKcl", our_stream_write, &real_write},
    {"_ZSt16__ostream_insertIcSt11char_traitsIcEERSt13basic_ostreamIT_T0_ES6_PKS3_l", our_stream_insert, &real_insert},
};

HIDDEN void ffuzz_writes_start(void) { ffuzz_callers_redirect(functions, sizeof functions / sizeof *functions); }
