/* Fork servers as other runtimes have them, written down from the protocol alone: built by an
 * ordinary compiler, so that nothing of ours is in it.
 *
 *   legacy KIND
 *     classic             hello 0, map of 65536
 *     old SIZE            AFL++'s option word with a map size
 *     old-dict            … with a dictionary ("needle!")
 *     old-shared          … with test cases in shared memory
 *     old-both            … with both
 *     v1, v1-all          the versioned hello, without and with dictionary and shared memory
 *     v1-large            … with a map of 12000001
 *     dsf1 … dsf4         FuzzFactory: a number of domains and their records
 *     range gap order reducer   FuzzFactory with a bad record
 *     killerbeez v1-version v1-end dict-length
 *     old-error v1-error CODE   the error words of both
 *     exit die silent     no hello at all
 *     reads FILE          reads before it says hello
 *     deaf                as classic, but ignores SIGTERM
 *
 * A child marks one edge for each right letter of "QUIZ" and aborts behind the last; so does an
 * input with "needle!". Under dsf1 no edge is marked: only the domain knows about letters. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#define CONTROL 198
#define STATUS 199
#define OLD 0x80000001u
#define OLD_MAP 0x40000000u
#define OLD_DICT 0x10000000u
#define OLD_SHARED 0x01000000u
#define V1 0x41464c01u

static const char id_variable[] = "__AFL_SHM_ID"; /* fuzzers look for it in the file */
static uint8_t *map, *shared;
static uint32_t *dsf;
static const char *kind;
static uint32_t code; /* of an error */
static uint32_t letters_at = 1; /* index of the first letter's edge */

static int is(const char *name) { return !strcmp(kind, name); }
static int begins(const char *name) { return !strncmp(kind, name, strlen(name)); }

static void say(uint32_t word) {
  if (write(STATUS, &word, 4) != 4) _exit(9);
}

static uint32_t receive(void) {
  uint32_t word;
  if (read(CONTROL, &word, 4) != 4) _exit(1);
  return word;
}

static uint8_t *attach(const char *name) {
  const char *id = getenv(name);
  uint8_t *at = id ? shmat(atoi(id), NULL, 0) : (void *)-1;
  if (at == (void *)-1) _exit(8);
  return at;
}

/* Neither these nor the letters are strings of the program, which are words too. */
static const uint8_t words[] = {3, 'a', 'b', 'c', 7, 'n', 'e', 'e', 'd', 'l', 'e', '!'};
static const uint8_t no_letters[] = {'Q' ^ 255, 'U' ^ 255, 'I' ^ 255, 'Z' ^ 255};

static void say_dictionary(void) {
  say(sizeof words);
  if (write(STATUS, words, sizeof words) != sizeof words) _exit(9);
}

static void hello_old(void) {
  int dictionary = is("old-dict") || is("old-both"), wants_shared = is("old-shared") || is("old-both");
  say(OLD | OLD_MAP | (1000 - 1) << 1 | (dictionary ? OLD_DICT : 0) | (wants_shared ? OLD_SHARED : 0));
  if (!dictionary && !wants_shared) return;
  uint32_t answer = receive();
  if ((answer & OLD) != OLD) _exit(7);
  if (dictionary && answer & OLD_DICT) say_dictionary();
  if (wants_shared && answer & OLD_SHARED) shared = attach("__AFL_SHM_FUZZ_ID");
}

static void hello_v1(void) {
  int all = is("v1-all");
  say(V1);
  if (receive() != ~V1) _exit(1);
  say(1 | (all ? 2 | 0x800 : 0));
  say(is("v1-large") ? 12000001 : 1000);
  if (all) say_dictionary();
  if (all) shared = attach("__AFL_SHM_FUZZ_ID");
  say(is("v1-end") ? 5 : V1);
  if (is("v1-large")) letters_at = 12000001 - 8;
}

static void record(int32_t start, int32_t end, int32_t reducer, uint32_t initial) {
  say((uint32_t)start), say((uint32_t)end), say((uint32_t)reducer), say(initial);
}

static void hello_domains(void) {
  int count = kind[3] - '0';
  say((uint32_t)count);
  record(0, 1, 0, 0);
  if (count > 1) record(1, 3, 1, 0xffffffff);
  if (count > 2) record(3, 6, 3, 0);
  if (count > 3) record(6, 10, 4, 0xffffffff);
}

static void hello(void) {
  if (is("exit")) _exit(3);
  if (is("die")) raise(SIGSEGV);
  if (is("silent")) for (;;) pause();
  if (is("classic") || is("deaf")) return say(0);
  if (is("killerbeez")) return say(0x41414141);
  if (is("old-error")) say(0xf800008f | code << 8), _exit(1);
  if (is("v1-error")) say(0xeffe0000 | code), _exit(1);
  if (is("v1-version")) return say(0x41464c02);
  if (is("range")) return say(1), record(0, 300000, 0, 0);
  if (is("gap")) return say(2), record(0, 4, 0, 0), record(5, 6, 0, 0);
  if (is("order")) return say(1), record(4, 0, 0, 0);
  if (is("reducer")) return say(1), record(0, 4, 5, 0);
  if (is("dict-length")) return say(OLD | OLD_DICT), (void)receive(), say(0x01000000);
  if (begins("old")) return hello_old();
  if (begins("v1")) return hello_v1();
  if (begins("dsf")) return hello_domains();
  _exit(2);
}

static int equal_bits(uint32_t a, uint32_t b) { return 32 - __builtin_popcount(a ^ b); }

/* What a FuzzFactory target would do: four operations on four kinds of domains. */
static void fill_domains(const uint8_t *data, uint32_t length) {
  int count = kind[3] - '0';
  uint32_t first = 0;
  memcpy(&first, data, length < 4 ? length : 4);
  if (count == 1) dsf[0] = (uint32_t)equal_bits(first, 0x5a495551); /* QUIZ */
  if (count == 1) return;
  if (length > dsf[0]) dsf[0] = length;
  dsf[2] = data[0];
  if (count > 2) dsf[5] |= 1u << (data[0] & 31);
  if (count > 3) dsf[9] = data[0] | 0xf0u;
}

static void run(void) {
  static uint8_t buffer[1 << 20];
  const uint8_t *data = buffer;
  uint32_t length = 0;
  if (shared) {
    length = *(uint32_t *)shared;
    data = shared + 4;
  } else {
    ssize_t n = read(0, buffer, sizeof buffer);
    length = n > 0 ? (uint32_t)n : 0;
  }
  map[0] = 1;
  if (dsf) fill_domains(data, length);
  uint32_t right = 0;
  while (right < 4 && right < length && (data[right] ^ 255) == no_letters[right]) {
    right++;
    if (!dsf) map[letters_at + right] = 1;
  }
  if (right == 4 || memmem(data, length, words + 5, 7)) abort();
  _exit(0);
}

int main(int argc, char **argv) {
  kind = argc > 1 ? argv[1] : "classic";
  code = argc > 2 ? (uint32_t)atoi(argv[2]) : 0;
  if (is("reads")) {
    char letter;
    return (int)read(open(argv[2], O_RDWR), &letter, 1);
  }
  if (is("deaf")) signal(SIGTERM, SIG_IGN);
  map = attach(id_variable);
  if (begins("dsf")) dsf = (uint32_t *)(map + 65536);
  hello();
  for (;;) {
    receive();
    pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) {
      close(CONTROL);
      close(STATUS);
      run();
    }
    int status;
    say((uint32_t)child);
    if (waitpid(child, &status, 0) != child) return 1;
    say((uint32_t)status);
  }
}
