/* __AFL_FUZZ_TESTCASE_BUF and __AFL_FUZZ_TESTCASE_LEN: the fuzzer's shared memory if it offers
 * some, standard input otherwise. */
#define _GNU_SOURCE
#include <errno.h>
#include <unistd.h>

#include "testcase.h"
#include "process.h"

#define LARGEST (1u << 20) /* AFL's limit for a test case */

static unsigned char own_buffer[LARGEST];

unsigned char *__ffuzz_testcase_buf(void) { return __afl_fuzz_ptr ? __afl_fuzz_ptr : own_buffer; }

/* Standard input is read once in each pass of the loop, however often the length is asked for. */
unsigned int __ffuzz_testcase_len(void) {
  static unsigned int length;
  static uint32_t read_in = UINT32_MAX;
  if (__afl_fuzz_ptr) return *__afl_fuzz_len < LARGEST ? *__afl_fuzz_len : LARGEST;
  if (read_in == ffuzz_iteration) return length;
  read_in = ffuzz_iteration;
  for (length = 0; length < LARGEST;) {
    ssize_t n = read(0, own_buffer + length, LARGEST - length);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    length += (unsigned int)n;
  }
  return length;
}
