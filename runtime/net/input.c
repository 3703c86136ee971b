#define _GNU_SOURCE
#include "net/input.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "net/kernel.h"
#include "net/record.h"

#define LARGEST (1u << 20) /* AFL's limit for a test case */
#define HEAD 4u

static const uint8_t *input;
static uint32_t input_length, at; /* `at`: behind the present message */
static int is_read, is_list, is_there;
static int is_due; /* the message at `at` is still to become the present one: a recorded peer may have to send it */
static uint32_t shared; /* bytes of the messages that all inputs begin with, until the others are known */
static struct net_message present;

HIDDEN void ffuzz_net_keep_input(void) {
  if (REAL(dup3, 0, NET_INPUT, O_CLOEXEC) < 0) return;
  long nothing = REAL(openat, AT_FDCWD, "/dev/null", O_RDONLY);
  if (nothing < 0) return;
  REAL(dup3, nothing, 0, 0);
  if (nothing > 0) REAL(close, nothing);
}

/* The fuzzer's file from its beginning; a pipe, of a run by hand, to its end. */
static uint32_t read_file(uint8_t *to) {
  uint32_t have = 0;
  struct stat file;
  int is_file = !REAL(fstat, NET_INPUT, &file) && S_ISREG(file.st_mode);
  for (long n; have < LARGEST; have += (uint32_t)n) {
    n = is_file ? REAL(pread64, NET_INPUT, to + have, LARGEST - have, have)
                : REAL(read, NET_INPUT, to + have, LARGEST - have);
    if (n <= 0) break;
  }
  return have;
}

static uint32_t word_at(uint32_t offset) {
  const uint8_t *b = input + offset;
  return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

/* Makes the message at `at` the present one. */
static void take_message(void) {
  if (ffuzz_net_records()) {
    is_there = ffuzz_net_record_next(&present);
    return;
  }
  if (shared && at >= shared) {
    present = (struct net_message){NULL, 0, word_at(at) >> 24 & (NET_CONNECTIONS - 1)};
    return;
  }
  uint32_t left = input_length - at;
  is_there = is_list ? left >= HEAD : left > 0;
  if (!is_there) return;
  uint32_t word = is_list ? word_at(at) : left, length = word & 0xffffff;
  if (is_list) at += HEAD, left -= HEAD;
  if (length > left) length = left;
  present = (struct net_message){input + at, length, is_list ? word >> 24 & (NET_CONNECTIONS - 1) : 0};
  at += length;
}

/* Of the runtime, if it is in the program and puts it back after each run (runtime/snapshot/snapshot.c). */
extern int __ffuzz_net_input(const uint8_t **bytes, uint32_t *length, uint32_t *shared) __attribute__((weak));

static uint8_t own[LARGEST];

static void read_input(void) {
  shared = 0;
  if (!&__ffuzz_net_input || !__ffuzz_net_input(&input, &input_length, &shared)) {
    input_length = read_file(own);
    input = own;
  }
  if (!shared) return;
  /* The fuzzer puts the next inputs into the same place. */
  if (input_length > shared + HEAD) input_length = shared + HEAD;
  memcpy(own, input, input_length);
  input = own;
}

static void read_once(void) {
  if (is_read) return;
  is_read = 1;
  if (!ffuzz_net_records()) read_input();
  is_list = input_length >= HEAD && word_at(0) >> 24 < NET_CONNECTIONS && (word_at(0) & 0xffffff) <= input_length - HEAD;
  is_due = 1;
}

HIDDEN int ffuzz_net_is_read(void) { return is_read; }

HIDDEN const struct net_message *ffuzz_net_present(void) {
  read_once();
  if (is_due) {
    is_due = 0;
    take_message();
  }
  return is_there ? &present : NULL;
}

HIDDEN const struct net_message *ffuzz_net_whole(void) {
  if (ffuzz_net_present() && !present.bytes) {
    read_input();
    take_message();
  }
  return ffuzz_net_present();
}

HIDDEN void ffuzz_net_next(void) {
  ffuzz_net_whole();
  is_due = 1;
}
