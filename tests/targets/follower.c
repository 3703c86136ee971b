/* Follows a program and all that it starts, as strace -f does: nobody else can trace them. */
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
  (void)argc;
  pid_t pid = fork();
  if (pid == 0) {
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    execv(argv[1], argv + 1);
    _exit(99);
  }
  int status, code = 98;
  waitpid(pid, &status, 0);
  long options = PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL;
  ptrace(PTRACE_SETOPTIONS, pid, 0, options);
  ptrace(PTRACE_CONT, pid, 0, 0);
  for (pid_t found; (found = waitpid(-1, &status, __WALL)) > 0;) {
    if (found == pid && WIFEXITED(status)) code = WEXITSTATUS(status);
    if (!WIFSTOPPED(status)) continue;
    int signal = WSTOPSIG(status);
    int stop = status >> 16 || signal == SIGTRAP || signal == SIGSTOP;
    ptrace(PTRACE_CONT, found, 0, (void *)(long)(stop ? 0 : signal));
  }
  return code;
}
