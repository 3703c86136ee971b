/* See report.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "driver/report.h"
#include "driver/options.h"

/* Longer inputs are not printed. */
#define MOST_PRINTED 256

__attribute__((weak)) void __sanitizer_set_report_fd(void *fd);

HIDDEN int ffuzz_driver_saves;
HIDDEN unsigned long ffuzz_driver_runs, ffuzz_driver_new_units;
HIDDEN double ffuzz_driver_slowest;

static int output = 2;

static int write_all(int file, const void *bytes, size_t size) {
  const char *at = bytes;
  while (size) {
    ssize_t n = write(file, at, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return 0;
    at += n, size -= (size_t)n;
  }
  return 1;
}

HIDDEN void ffuzz_driver_print(const char *format, ...) {
  char text[8192];
  va_list values;
  va_start(values, format);
  int length = vsnprintf(text, sizeof text, format, values);
  va_end(values);
  if (length > 0) write_all(output, text, (size_t)length < sizeof text ? (size_t)length : sizeof text - 1);
}

static void discard(int fd) {
  int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nowhere < 0) return;
  dup2(nowhere, fd);
  close(nowhere);
}

HIDDEN void ffuzz_driver_close_outputs(void) {
  if (ffuzz_driver.close_fd_mask & 1) discard(1);
  if (!(ffuzz_driver.close_fd_mask & 2)) return;
  int copy = fcntl(2, F_DUPFD_CLOEXEC, 3);
  if (copy < 0) return;
  output = copy;
  if (__sanitizer_set_report_fd) __sanitizer_set_report_fd((void *)(intptr_t)copy);
  discard(2);
}

static uint32_t rotate(uint32_t x, int n) { return x << n | x >> (32 - n); }

static void sha1_block(uint32_t h[5], const uint8_t *bytes) {
  uint32_t w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];
  for (int i = 0; i < 16; i++)
    w[i] = (uint32_t)bytes[4 * i] << 24 | (uint32_t)bytes[4 * i + 1] << 16 | (uint32_t)bytes[4 * i + 2] << 8 |
           bytes[4 * i + 3];
  for (int i = 16; i < 80; i++) w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
  for (int i = 0; i < 80; i++) {
    uint32_t f = i < 20 ? (b & c) | (~b & d) : i >= 40 && i < 60 ? (b & c) | (b & d) | (c & d) : b ^ c ^ d;
    uint32_t k = i < 20 ? 0x5a827999 : i < 40 ? 0x6ed9eba1 : i < 60 ? 0x8f1bbcdc : 0xca62c1d6;
    uint32_t next = rotate(a, 5) + f + e + k + w[i];
    e = d, d = c, c = rotate(b, 30), b = a, a = next;
  }
  h[0] += a, h[1] += b, h[2] += c, h[3] += d, h[4] += e;
}

/* In hexadecimal digits. No library: this runs in a handler of signals. */
static void sha1(const uint8_t *bytes, size_t length, char text[41]) {
  uint32_t h[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
  uint8_t last[128] = {0};
  size_t whole = length / 64 * 64, rest = length - whole, padded = rest < 56 ? 64 : 128;
  for (size_t at = 0; at < whole; at += 64) sha1_block(h, bytes + at);
  memcpy(last, bytes + whole, rest);
  last[rest] = 0x80;
  for (int i = 0; i < 8; i++) last[padded - 1 - (size_t)i] = (uint8_t)((uint64_t)length * 8 >> 8 * i);
  for (size_t at = 0; at < padded; at += 64) sha1_block(h, last + at);
  for (int i = 0; i < 40; i++) text[i] = "0123456789abcdef"[h[i / 8] >> (28 - 4 * (i % 8)) & 15];
  text[40] = 0;
}

static void base64(const uint8_t *data, size_t size, char *text) {
  static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (size_t at = 0; at < size; at += 3) {
    size_t left = size - at;
    uint32_t three = (uint32_t)data[at] << 16 | (left > 1 ? (uint32_t)data[at + 1] << 8 : 0) | (left > 2 ? data[at + 2] : 0);
    *text++ = letters[three >> 18];
    *text++ = letters[three >> 12 & 63];
    *text++ = left > 1 ? letters[three >> 6 & 63] : '=';
    *text++ = left > 2 ? letters[three & 63] : '=';
  }
  *text = 0;
}

/* Devices and the like stay as they are. 0, or the cause. */
static int write_file(const char *path, const uint8_t *data, size_t size) {
  struct stat info;
  int file = open(path, O_WRONLY | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0644);
  if (file < 0) return errno;
  int error = fstat(file, &info) ? errno : !S_ISREG(info.st_mode) ? EINVAL : ftruncate(file, 0) ? errno : 0;
  if (!error && !write_all(file, data, size)) error = errno;
  close(file);
  return error;
}

HIDDEN void ffuzz_driver_save(const char *kind, const uint8_t *data, size_t size) {
  char digest[41], name[4096], encoded[4 * (MOST_PRINTED / 3 + 1) + 1];
  const char *exact = ffuzz_driver.exact_artifact_path, *prefix = ffuzz_driver.artifact_prefix;
  if (!ffuzz_driver_saves) return;
  sha1(data, size, digest);
  int length = *exact ? snprintf(name, sizeof name, "%s", exact) : snprintf(name, sizeof name, "%s%s-%s", prefix, kind, digest);
  int error = length < 0 || (size_t)length >= sizeof name ? ENAMETOOLONG : write_file(name, data, size);
  if (error)
    ffuzz_driver_print("ERROR: cannot write %s: %s\n", name, error == EINVAL ? "no regular file" : strerror(error));
  else
    ffuzz_driver_print("artifact_prefix='%s'; Test unit written to %s\n", prefix, name);
  if (size > MOST_PRINTED) return;
  base64(data, size, encoded);
  ffuzz_driver_print("Base64: %s\n", encoded);
}

static void print_bytes(const uint8_t *data, size_t size) {
  char text[5 * MOST_PRINTED + 1], *end = text;
  for (size_t i = 0; i < size; i++) end += sprintf(end, "0x%x,", data[i]);
  *end = 0;
  ffuzz_driver_print("%s\n", text);
  end = text;
  for (size_t i = 0; i < size; i++) {
    if (data[i] == '\\' || data[i] == '"') *end++ = '\\';
    end += sprintf(end, data[i] >= ' ' && data[i] < 127 ? "%c" : "\\%03o", data[i]);
  }
  *end = 0;
  ffuzz_driver_print("%s\n", text);
}

HIDDEN void ffuzz_driver_save_last(const char *kind, const uint8_t *data, size_t size) {
  if (!ffuzz_driver_saves) return;
  ffuzz_driver_print("MS: 0 ; base unit: %040d\n", 0);
  if (size <= MOST_PRINTED) print_bytes(data, size);
  ffuzz_driver_save(kind, data, size);
}

HIDDEN double ffuzz_driver_seconds(void) {
  static double begun;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  double all = (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
  if (begun <= 0) begun = all;
  return all - begun;
}

HIDDEN long ffuzz_driver_peak_mb(void) {
  struct rusage usage;
  return getrusage(RUSAGE_SELF, &usage) ? 0 : usage.ru_maxrss >> 10;
}

HIDDEN void ffuzz_driver_statistics(void) {
  double spent = ffuzz_driver_seconds();
  if (!ffuzz_driver.print_final_stats) return;
  ffuzz_driver_print("stat::number_of_executed_units: %lu\nstat::average_exec_per_sec:     %lu\n"
                     "stat::new_units_added:          %lu\nstat::slowest_unit_time_sec:    %lu\n"
                     "stat::peak_rss_mb:              %ld\n",
                     ffuzz_driver_runs, spent >= 1 ? (unsigned long)((double)ffuzz_driver_runs / spent) : 0,
                     ffuzz_driver_new_units, (unsigned long)ffuzz_driver_slowest, ffuzz_driver_peak_mb());
}
