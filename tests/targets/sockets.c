/* A server or client for the stand-in of --net. The first word chooses how it waits and what it is; it prints what it
 * receives: the connection, a colon, the bytes, a bar. LOGIN, MAIL and DATA in that order over one connection abort.
 * With a second word a login takes long. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PORT 7000

static int number; /* of the connection */
static char text[64];

static void say(const char *what, long length) {
  printf("%d:%.*s|", number, (int)length, what);
  fflush(stdout);
}

static void answer(int fd, const char *words) {
  if (write(fd, words, strlen(words)) < 0) say("unwritten", 9);
}

static int is_costly;

static void compute(void) {
  static volatile unsigned sum;
  for (unsigned i = 0; i < 1000000; i++) sum += i;
}

static void handle(int fd, int *state, const char *bytes, long length) {
  if (is_costly && length >= 5 && !memcmp(bytes, "LOGIN", 5)) compute();
  say(bytes, length);
  if (length >= 5 && !memcmp(bytes, "LOGIN", 5) && *state == 0) *state = 1, answer(fd, "250 in\n");
  else if (length >= 4 && !memcmp(bytes, "MAIL", 4) && *state == 1) *state = 2, answer(fd, "251 go\n");
  else if (length >= 4 && !memcmp(bytes, "DATA", 4) && *state == 2) abort();
  else answer(fd, "500 no\n");
}

/* Until the end of the connection. */
static void serve(int fd) {
  int state = 0;
  for (ssize_t n; (n = recv(fd, text, sizeof text, 0)) > 0;) handle(fd, &state, text, n);
  say("end", 3);
  close(fd);
  number++;
}

static int listener(int port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  int fd = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (bind(fd, (void *)&address, sizeof address) || listen(fd, 5)) exit(3);
  return fd;
}

static int local_listener(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  strncpy(address.sun_path, path, sizeof address.sun_path - 1);
  if (bind(fd, (void *)&address, sizeof address) || listen(fd, 5)) exit(3);
  return fd;
}

static int connected(int type, int port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
  int fd = socket(AF_INET, type, 0);
  if (connect(fd, (void *)&address, sizeof address)) say(strerror(errno), (long)strlen(strerror(errno)));
  return fd;
}

/* What poll, select and epoll share: all connections at once. */
static int open_fds[16], states[16], numbers[16], count;

static void step(int fd, int server) {
  if (fd == server) {
    int new = accept4(server, NULL, NULL, SOCK_NONBLOCK);
    if (new >= 0) open_fds[count] = new, states[count] = 0, numbers[count] = count, count++;
    return;
  }
  for (int i = 0; i < count; i++) {
    if (open_fds[i] != fd) continue;
    number = numbers[i];
    ssize_t n = recv(fd, text, sizeof text, 0);
    if (n < 0) say(errno == EAGAIN ? "again" : "error", 5);
    if (n > 0) handle(fd, &states[i], text, n);
    if (n == 0) say("end", 3), close(fd), open_fds[i] = -1;
  }
}

static void by_poll(int server) {
  for (;;) {
    struct pollfd all[17] = {{server, POLLIN, 0}};
    for (int i = 0; i < count; i++) all[i + 1] = (struct pollfd){open_fds[i], POLLIN, 0};
    int known = count + 1;
    if (poll(all, (nfds_t)known, 500) < 0) exit(4);
    for (int i = 0; i < known; i++)
      if (all[i].revents & POLLIN) step(all[i].fd, server);
  }
}

static void by_select(int server) {
  for (;;) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(server, &set);
    for (int i = 0; i < count; i++)
      if (open_fds[i] >= 0) FD_SET(open_fds[i], &set);
    if (select(FD_SETSIZE, &set, NULL, NULL, NULL) < 0) exit(4);
    for (int fd = 0; fd < FD_SETSIZE; fd++)
      if (FD_ISSET(fd, &set)) step(fd, server);
  }
}

static void by_epoll(int server, unsigned edge) {
  int all = epoll_create1(0), known = 0;
  struct epoll_event event = {EPOLLIN, {.fd = server}};
  epoll_ctl(all, EPOLL_CTL_ADD, server, &event);
  if (epoll_ctl(all, EPOLL_CTL_ADD, server, &event) == 0 || errno != EEXIST) exit(5);
  for (;;) {
    struct epoll_event events[8];
    int found = epoll_wait(all, events, 8, -1);
    for (int i = 0; i < found; i++) step(events[i].data.fd, server);
    for (; known < count; known++) {
      event = (struct epoll_event){EPOLLIN | edge, {.fd = open_fds[known]}};
      epoll_ctl(all, EPOLL_CTL_ADD, open_fds[known], &event);
    }
  }
}

static void datagrams(void) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(PORT)}, from;
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  char small[4];
  if (bind(fd, (void *)&address, sizeof address)) exit(3);
  for (;;) {
    struct iovec part = {small, sizeof small};
    struct msghdr message = {.msg_name = &from, .msg_namelen = sizeof from, .msg_iov = &part, .msg_iovlen = 1};
    ssize_t n = recvmsg(fd, &message, 0);
    number = ntohs(from.sin_port) - 40000;
    if (is_costly && n == 4 && !memcmp(small, "LOGI", 4)) compute();
    if (n >= 0) say(small, n);
    if (message.msg_flags & MSG_TRUNC) say("cut", 3);
    sendto(fd, "ok", 2, 0, (void *)&from, sizeof from);
  }
}

static void as_daemon(int server) {
  if (fork()) _exit(0);
  setsid();
  if (fork()) _exit(0);
  int null = open("/dev/null", O_RDWR);
  dup2(null, 0);
  close_range(3, ~0u, 0);
  server = listener(PORT);
  serve(accept(server, NULL, NULL));
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static int work;

static void *worker(void *unused) {
  pthread_mutex_lock(&lock);
  while (!work) pthread_cond_wait(&wake, &lock);
  number = 8;
  say("worker", 6);
  pthread_mutex_unlock(&lock);
  return unused;
}

static void *of_connection(void *fd) {
  serve((int)(long)fd);
  pthread_exit(fd);
}

/* A worker that is started early, and a thread for each connection. QUIT gives the worker something to do. */
static void with_threads(void) {
  pthread_t early, own;
  void *result;
  int server = listener(PORT);
  pthread_create(&early, NULL, worker, NULL);
  pthread_setname_np(early, "worker");
  for (;;) {
    int fd = accept(server, NULL, NULL);
    if (pthread_create(&own, NULL, of_connection, (void *)(long)fd) || pthread_join(own, &result)) exit(3);
    if (result != (void *)(long)fd) exit(4);
    if (memcmp(text, "WORK", 4)) continue;
    pthread_mutex_lock(&lock);
    work = 1;
    pthread_cond_signal(&wake);
    pthread_mutex_unlock(&lock);
    pthread_join(early, NULL);
  }
}

/* What servers do before they wait: files of their own, another group of processes, limits, the name service. */
static void busy(void) {
  char line[64], path[] = "/tmp/ffuzz-sockets-XXXXXX";
  int server = listener(PORT), log = mkstemp(path), copy = dup(log);
  struct rlimit limit = {64, 64};
  sigset_t blocked;
  if (log < 0 || write(log, line, (size_t)sprintf(line, "%d\n", getpid())) < 0 || ftruncate(log, 0)) exit(3);
  fchmod(log, 0644);
  rename(path, "/tmp/ffuzz-sockets.log");
  unlink("/tmp/ffuzz-sockets.log");
  close(log);
  setpgid(0, 0);
  setrlimit(RLIMIT_CORE, &limit);
  if (getuid() == 0 && (setgroups(0, NULL) || setgid(65534) || setuid(65534))) exit(4);
  getpwnam("nobody");
  FILE *maps = fopen("/proc/self/stat", "r");
  if (maps) fgets(line, sizeof line, maps), fclose(maps);
  int null = open("/dev/null", O_RDWR);
  dup2(null, 0), dup2(null, 2);
  if (null > 2) close(null);
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGPIPE);
  sigprocmask(SIG_BLOCK, &blocked, NULL);
  int all = epoll_create1(0);
  struct epoll_event event = {EPOLLIN, {.fd = server}};
  epoll_ctl(all, EPOLL_CTL_ADD, server, &event);
  if (epoll_wait(all, &event, 1, -1) != 1) exit(5);
  serve(accept(server, NULL, NULL));
  close(copy);
}

/* Three words in three messages, the second longer than what a session has there. */
static void keyed(int server) {
  static const char *const words[] = {"LOGIN", "AUTHENTICATE EXTERNALLY", "MAIL"};
  char line[4096] = "";
  int fd = accept(server, NULL, NULL);
  for (int done = 0; recv(fd, line, sizeof line - 1, 0) > 0; memset(line, 0, sizeof line)) {
    if (strncmp(line, words[done], strlen(words[done]))) break;
    if (++done == 3) abort();
  }
}

static void by_stream(int server) {
  int fd = accept(server, NULL, NULL);
  FILE *in = fdopen(fd, "r"), *out = fdopen(dup(fd), "w");
  while (fgets(text, sizeof text, in)) say(text, (long)strcspn(text, "\n")), fputs("250\n", out), fflush(out);
}

static void within_itself(void) {
  int two[2], pair[2], event = eventfd(0, EFD_NONBLOCK), timer = timerfd_create(CLOCK_MONOTONIC, 0);
  struct itimerspec due = {{0, 0}, {3600, 0}};
  uint64_t value = 5, expired = 0;
  char bytes[8] = "";
  time_t before = time(NULL);
  if (pipe(two) || socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) exit(3);
  if (read(event, &value, 8) >= 0 || errno != EAGAIN) exit(5);
  if (write(event, &value, 8) != 8 || write(two[1], "ab", 2) != 2 || write(pair[0], "cd", 2) != 2) exit(6);
  if (read(event, &value, 8) != 8 || value != 5) exit(7);
  if (read(two[0], bytes, 1) != 1 || read(pair[1], bytes + 1, 2) != 2) exit(8);
  say(bytes, 3);
  timerfd_settime(timer, 0, &due, NULL);
  if (read(timer, &expired, 8) != 8 || time(NULL) - before < 3600) exit(9);
  close(two[1]);
  if (read(two[0], bytes, 8) != 1 || read(two[0], bytes, 8) != 0) exit(10);
  sleep(1000);
}

static void random_numbers(void) {
  unsigned char a[4], b[4];
  int fd = open("/dev/urandom", O_RDONLY);
  if (getrandom(a, 4, 0) != 4 || read(fd, b, 4) != 4) exit(3);
  for (int i = 0; i < 4; i++) printf("%02x%02x", a[i], b[i]);
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  unsigned low, high;
  __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
  void *block = malloc(1);
  printf(" %u%u %d %d %p %ld|", high, low, (int)getpid(), kill(getpid(), 0), block, (long)now.tv_sec);
  fflush(stdout);
}

static void ring(int signal_number) { say("ring", 4), number = signal_number; }

/* It waits for what does not come, with an alarm. */
static void with_alarm(void) {
  int fd = accept(listener(PORT), NULL, NULL);
  struct itimerval left;
  signal(SIGALRM, ring);
  alarm(5);
  getitimer(ITIMER_REAL, &left);
  if (left.it_value.tv_sec != 4 || recv(fd, text, sizeof text, 0) < 0) exit(3);
  while (number != SIGALRM) pause();
}

int main(int argc, char **argv) {
  const char *how = argc > 1 ? argv[1] : "plain";
  is_costly = argc > 2;
#define IS(WORD) (!strcmp(how, WORD))
  if (IS("plain")) for (int server = listener(PORT);;) serve(accept(server, NULL, NULL));
  if (IS("poll")) by_poll(listener(PORT));
  if (IS("select")) by_select(listener(PORT));
  if (IS("epoll")) by_epoll(listener(PORT), 0);
  if (IS("edges")) by_epoll(listener(PORT), EPOLLET);
  if (IS("udp")) datagrams();
  if (IS("unix")) serve(accept(local_listener("/tmp/ffuzz-sockets"), NULL, NULL));
  if (IS("client")) serve(connected(SOCK_STREAM, argc > 2 ? atoi(argv[2]) : 80));
  if (IS("udp-client")) {
    int fd = connected(SOCK_DGRAM, 53);
    answer(fd, "who?");
    serve(fd);
  }
  if (IS("fork")) {
    for (int server = listener(PORT);;) {
      int fd = accept(server, NULL, NULL);
      if (!fork()) close(server), serve(fd), exit(0);
      close(fd);
    }
  }
  if (IS("daemon")) as_daemon(-1);
  if (IS("threads")) with_threads();
  if (IS("busy")) busy();
  if (IS("inetd")) {
    int fd = accept(listener(PORT), NULL, NULL);
    dup2(fd, 0);
    close(fd);
    serve(0);
  }
  if (IS("keyed")) keyed(listener(PORT));
  if (IS("stream")) by_stream(listener(PORT));
  if (IS("itself")) within_itself();
  if (IS("chance")) random_numbers();
  if (IS("alarm")) with_alarm();
  if (IS("silent")) listener(PORT), pause();
  if (IS("deaf")) accept(listener(PORT), NULL, NULL), sleep(1000);
  if (IS("greedy")) {
    int fd = accept(listener(PORT), NULL, NULL);
    for (struct pollfd one = {fd, POLLIN, 0}; poll(&one, 1, -1) > 0;);
  }
  if (IS("talker")) for (int fd = accept(listener(PORT), NULL, NULL); send(fd, "x", 1, 0) > 0;);
  if (IS("spins")) {
    int fd = accept4(listener(PORT), NULL, NULL, SOCK_NONBLOCK), state = 0;
    for (ssize_t n; (n = recv(fd, text, sizeof text, 0)) != 0;)
      if (n > 0) handle(fd, &state, text, n);
  }
  if (IS("raw")) return socket(AF_INET, SOCK_RAW, IPPROTO_ICMP) >= 0;
  if (IS("second")) {
    int fd = accept(listener(PORT), NULL, NULL);
    listener(PORT + 1);
    serve(fd);
  }
  return 0;
}
