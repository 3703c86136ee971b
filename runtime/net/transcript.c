#define _GNU_SOURCE
#include "net/transcript.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "net/kernel.h"

static int is_wanted;

HIDDEN void ffuzz_net_transcript_starts(void) {
  is_wanted = getenv("FFUZZ_NET_TRANSCRIPT") && ffuzz_kernel(SYS_fcntl, NET_TRANSCRIPT, F_GETFD, 0, 0, 0, 0) >= 0;
}

HIDDEN void ffuzz_net_note(enum net_event kind, int connection, int port, const void *text, size_t length) {
  if (!is_wanted) return;
  struct net_record record = {(uint32_t)length, (uint8_t)kind, (uint8_t)connection, (uint16_t)port};
  struct iovec parts[] = {{&record, sizeof record}, {(void *)(uintptr_t)text, length}};
  ffuzz_kernel(SYS_writev, NET_TRANSCRIPT, (long)parts, 2, 0, 0, 0);
}

HIDDEN void ffuzz_net_note_word(enum net_event kind, const char *word) {
  ffuzz_net_note(kind, 0, 0, word, strlen(word));
}
