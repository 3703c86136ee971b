/* A lock that only a run which ends well removes: a file, with `socket` a socket. An input that begins with F crashes.
 * With `nothing` it leaves nothing behind, and crashes only in a process that is restored after each run. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int lock_file(void) { return open("app.lock", O_CREAT | O_EXCL | O_RDWR, 0600) >= 0; }

static int lock_socket(void) {
  struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "app.lock"};
  return !bind(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&address, sizeof address);
}

int main(int argc, char **argv) {
  char word[8] = {0};
  const char *how = argc > 1 ? argv[1] : "";
  int is_nothing = !strcmp(how, "nothing");
  if (!is_nothing && !(!strcmp(how, "socket") ? lock_socket() : lock_file())) return 1;
  if (read(0, word, sizeof word - 1) < 0) return 1;
  /* A restored process has a filter for system calls. */
  if (word[0] == 'F' && (!is_nothing || prctl(PR_GET_SECCOMP) == 2)) abort();
  if (!is_nothing) unlink("app.lock");
  return 0;
}
