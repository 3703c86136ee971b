#define _GNU_SOURCE
#include "net/session.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "net/alarms.h"
#include "net/answers.h"
#include "net/chance.h"
#include "net/kernel.h"
#include "net/options.h"
#include "net/record.h"

/* A program that only tries to receive, without asking what is ready, gets the next message after as many. */
#define MOST_SPINS 64
/* Waits with a limit, and questions without one, before the run is over. */
#define MOST_IDLE 100
#define MOST_QUESTIONS 1000
/* Receives behind the end of a connection. */
#define MOST_ENDS 64
/* Questions that were answered with yes, and nothing was taken; and answers to one message. */
#define MOST_REMINDERS 10000
/* Questions that let a program write before it gets a message: some always ask for that. */
#define MOST_DEFERRED 8
#define MOST_ANSWERS 100000

/* In the order in which the input names them; the first `opened` exist. */
static struct connection {
  int is_closed;     /* by the program */
  int is_shut;       /* by the peer: an empty message */
  uint32_t ends;     /* how often the program was told of the end */
  int is_end_offered;
} connections[NET_CONNECTIONS];
static int opened;

/* The slot of each number that the input has named so far, plus one. */
static uint8_t slot_of_number[NET_CONNECTIONS];
static int named;

static struct net_message last; /* that was taken */
static int is_offered; /* the present message, or a connection for it */
static uint32_t offset; /* in the present message */
/* Since something was taken. */
static uint32_t spins, idle, questions, reminders, answers, deferred;

static void note_progress(void) { spins = idle = questions = reminders = answers = deferred = 0; }

static int slot_of(const struct net_message *message) {
  uint8_t *slot = &slot_of_number[message->connection];
  if (!*slot) *slot = (uint8_t)++named;
  return *slot - 1;
}

static void message_ends(void) {
  ffuzz_net_next();
  offset = 0;
  is_offered = 0;
}

/* Leaves out the present message. A connection that was named for it alone is not named any more. */
static void leave_out(const struct net_message *message) {
  int slot = slot_of(message);
  if (slot >= opened && slot == named - 1) {
    slot_of_number[message->connection] = 0;
    named--;
  }
  message_ends();
}

/* The next message that can be delivered; NULL at the end. */
static const struct net_message *next_message(void) {
  const struct net_message *message;
  for (; (message = ffuzz_net_present()); leave_out(message)) {
    int slot = slot_of(message);
    if (ffuzz_net.protocol == UDP && ffuzz_net.role == ROLE_SERVER) break;
    if (slot >= opened) {
      if (ffuzz_net.role == ROLE_CLIENT || ffuzz_net_listeners()) break;
    } else if (!connections[slot].is_closed && !connections[slot].is_shut)
      break;
  }
  return message;
}

static void offer(struct net_file *file) {
  if (++reminders > MOST_REMINDERS) ffuzz_net_run_ends("a message that it does not take");
  if (is_offered) return;
  is_offered = 1;
  spins = 0;
  file->news++;
}

/* Before the input is read the first connection waits, whatever it will say. */
HIDDEN int ffuzz_net_can_accept(struct net_file *listener, int asks) {
  if (!ffuzz_net_is_read()) return !opened;
  const struct net_message *message = next_message();
  if (!message || slot_of(message) < opened || opened == NET_CONNECTIONS) return 0;
  if (asks) offer(listener);
  return is_offered;
}

static int open_slot(enum net_event how, int port) {
  ffuzz_net_note(how, opened, port, NULL, 0);
  is_offered = 0;
  note_progress();
  return opened++;
}

HIDDEN int ffuzz_net_accept(void) {
  int slot = open_slot(NET_ACCEPTED, 0);
  ffuzz_net_record_opens(NULL, slot);
  return slot;
}

HIDDEN void ffuzz_net_session_begins(struct net_file *file) {
  file->kind = FILE_SESSION;
  int is_server = ffuzz_net.role == ROLE_SERVER;
  file->slot = is_server ? NET_ANY_SLOT : opened < NET_CONNECTIONS ? open_slot(NET_OPENED, file->port) : 0;
  if (is_server)
    opened = 1;
  else
    ffuzz_net_record_opens(file, file->slot);
}

static void answer_ends(void) { ffuzz_net_answers_end(last.bytes, last.length); }

HIDDEN void ffuzz_net_session_closes(struct net_file *file) {
  answer_ends();
  int slot = file->slot == NET_ANY_SLOT ? 0 : file->slot;
  connections[slot].is_closed = 1;
  ffuzz_net_record_closes(slot);
  ffuzz_net_note(NET_CLOSED, slot, 0, NULL, 0);
}

HIDDEN int ffuzz_net_has_begun(void) { return opened > 0; }

static int is_stream(const struct net_file *file) { return file->type != SOCK_DGRAM; }

HIDDEN int ffuzz_net_has_ended(const struct net_file *file) {
  return file->slot != NET_ANY_SLOT && connections[file->slot].ends > 0;
}

static int is_shut(const struct net_file *file) {
  return file->slot != NET_ANY_SLOT && connections[file->slot].is_shut;
}

/* Whether a message of this connection, or its end, comes next. */
static int is_next(const struct net_file *file) {
  if (!ffuzz_net_is_read()) return file->slot <= 0;
  if (is_shut(file)) return 1;
  const struct net_message *message = next_message();
  if (!message) return is_stream(file);
  return file->slot == NET_ANY_SLOT || slot_of(message) == file->slot;
}

HIDDEN int ffuzz_net_is_readable(struct net_file *file) {
  if (!is_next(file)) return 0;
  if (ffuzz_net_is_read() && (is_shut(file) || !next_message())) {
    /* The end is one more event, of each connection. */
    struct connection *connection = &connections[file->slot];
    if (!connection->is_end_offered) file->news++;
    connection->is_end_offered = 1;
    if (++reminders > MOST_REMINDERS) ffuzz_net_run_ends("an end that it does not take");
    return 1;
  }
  offer(file);
  return 1;
}

HIDDEN int ffuzz_net_defers(void) { return !is_offered && deferred++ < MOST_DEFERRED; }

static ssize_t receive_end(const struct net_file *file) {
  struct connection *connection = &connections[file->slot];
  answer_ends();
  if (!connection->ends++) ffuzz_net_note(NET_END_SEEN, file->slot, 0, NULL, 0);
  if (connection->ends > MOST_ENDS) ffuzz_net_run_ends("receive");
  return 0;
}

static size_t copy_out(const struct net_message *message, const struct iovec *to, int parts) {
  size_t from = offset;
  for (int i = 0; i < parts && from < message->length; i++) {
    size_t left = message->length - from, length = to[i].iov_len < left ? to[i].iov_len : left;
    memcpy(to[i].iov_base, message->bytes + from, length);
    from += length;
  }
  return from - offset;
}

/* The present message is for this file: takes as much of it as there is room for. */
static ssize_t take(struct net_file *file, const struct iovec *to, int parts, int flags, struct net_received *received) {
  if (!next_message() || is_shut(file)) {
    if (is_stream(file)) return receive_end(file);
    ffuzz_net_run_ends("receive");
  }
  const struct net_message *message = ffuzz_net_whole();
  received->slot = slot_of(message);
  received->whole = message->length - offset;
  size_t taken = copy_out(message, to, parts);
  is_offered = 1;
  if (flags & MSG_PEEK) {
    if (++reminders > MOST_REMINDERS) ffuzz_net_run_ends("a message that it does not take");
    return (ssize_t)taken;
  }
  if (!offset) {
    answer_ends();
    last = *message;
  }
  ffuzz_net_note(NET_TAKEN, received->slot, 0, message->bytes + offset, taken);
  note_progress();
  offset += (uint32_t)taken;
  received->is_truncated = !is_stream(file) && offset < message->length;
  if (is_stream(file) && !message->length) {
    connections[received->slot].is_shut = 1;
    connections[received->slot].ends = 1;
    ffuzz_net_note(NET_END_SEEN, received->slot, 0, NULL, 0);
  }
  if (!is_stream(file) || offset >= message->length) message_ends();
  return (ssize_t)taken;
}

/* Whether the program has been told of what comes next here. */
static int is_told(const struct net_file *file) {
  if (is_offered) return 1;
  return file->slot != NET_ANY_SLOT && connections[file->slot].is_end_offered && !next_message();
}

HIDDEN ssize_t ffuzz_net_receive(struct net_file *file, const struct iovec *to, int parts, int flags,
                                 struct net_received *received) {
  int waits = !file->is_nonblocking && !(flags & MSG_DONTWAIT);
  while (!is_next(file) || !(waits || is_told(file) || ffuzz_net_has_ended(file) || ++spins > MOST_SPINS)) {
    if (!waits) {
      if (++questions > MOST_QUESTIONS) ffuzz_net_waits(-1, "receive");
      FAIL(EAGAIN);
    }
    if (!ffuzz_net_waits(file->read_limit ? file->read_limit : -1, "receive")) FAIL(EAGAIN);
  }
  return take(file, to, parts, flags, received);
}

HIDDEN void ffuzz_net_answer(struct net_file *file, const struct iovec *from, int parts) {
  if (++answers > MOST_ANSWERS) ffuzz_net_run_ends("nothing, and sends without end");
  deferred = 0;
  for (int i = 0; i < parts; i++) {
    ffuzz_net_answers_add(from[i].iov_base, from[i].iov_len);
    ffuzz_net_record_answer(file->slot, from[i].iov_base, from[i].iov_len);
    ffuzz_net_note(NET_ANSWER, file->slot == NET_ANY_SLOT ? 0 : file->slot, 0, from[i].iov_base, from[i].iov_len);
  }
}

HIDDEN uint32_t ffuzz_net_waiting_bytes(const struct net_file *file) {
  if (file->kind == FILE_PIPE_IN || file->kind == FILE_PAIR) return (uint32_t)file->count;
  if (file->kind != FILE_SESSION || !is_offered || !is_next(file)) return 0;
  return next_message() ? ffuzz_net_whole()->length - offset : 0;
}

/* Nothing is left to deliver, and no connection is open whose end the program does not know. */
static int is_over(void) {
  if (!ffuzz_net_is_read() || next_message()) return 0;
  for (int i = 0; i < opened && ffuzz_net.protocol != UDP; i++)
    if (!connections[i].is_closed && !connections[i].ends) return 0;
  return 1;
}

/* The program does not take the present message: it wants nothing of that connection, or never opens it. */
static int skip_message(void) {
  const struct net_message *message = ffuzz_net_is_read() ? next_message() : NULL;
  if (!message) return 0;
  leave_out(message);
  note_progress();
  return 1;
}

/* When something comes by itself; 0: nothing does. */
static uint64_t next_timer(void) {
  uint64_t timer = ffuzz_net_next_timer(), alarm = ffuzz_net_next_alarm();
  return !timer || (alarm && alarm < timer) ? alarm : timer;
}

/* Whether a program that waits for longer than this is waiting for what does not come. */
static int is_patient(int64_t limit) {
  if (limit == 0) return ++questions <= MOST_QUESTIONS;
  return ++idle <= MOST_IDLE && (limit > 0 || next_timer());
}

HIDDEN int ffuzz_net_waits(int64_t limit, const char *call) {
  if (is_over()) ffuzz_net_run_ends(call);
  if (!is_patient(limit)) {
    if (skip_message()) return 1;
    ffuzz_net_run_ends(call);
  }
  if (limit == 0) return 0;
  uint64_t timer = next_timer(), now = ffuzz_net_now();
  if (timer && (limit < 0 || timer < now + (uint64_t)limit)) {
    if (timer > now) ffuzz_net_move_clock(timer - now);
    if (!ffuzz_net_alarm_rings()) ffuzz_net_run_ends(call);
    return 1;
  }
  ffuzz_net_move_clock((uint64_t)limit);
  return 0;
}

/* No handler of exit() is called: a server that is killed calls none. */
HIDDEN void ffuzz_net_run_ends(const char *call) {
  answer_ends();
  ffuzz_net_note_word(NET_RUN_ENDS, call);
  _exit(0);
}

HIDDEN socklen_t ffuzz_net_loopback(const struct net_file *file, int port, struct sockaddr_storage *to) {
  /* A listener for both families sees clients of the older one like this. */
  static const struct in6_addr mapped = {{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 127, 0, 0, 1}}};
  *to = (struct sockaddr_storage){.ss_family = (sa_family_t)file->domain};
  if (file->domain == AF_INET) {
    struct sockaddr_in *in = (void *)to;
    in->sin_port = htons((uint16_t)port);
    in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return sizeof *in;
  }
  if (file->domain == AF_INET6) {
    struct sockaddr_in6 *in = (void *)to;
    in->sin6_port = htons((uint16_t)port);
    in->sin6_addr = file->is_only_v6 ? in6addr_loopback : mapped;
    return sizeof *in;
  }
  return sizeof(sa_family_t);
}
