/* Single steps: prints how often each address of the program's own code was executed, as an offset from
   its beginning, once main was reached. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define LARGEST (1 << 20)
static unsigned counts[LARGEST];

static unsigned long base(pid_t pid) {
  char name[64], line[512];
  snprintf(name, sizeof name, "/proc/%d/maps", pid);
  FILE *maps = fopen(name, "r");
  if (!maps || !fgets(line, sizeof line, maps)) exit(2);
  fclose(maps);
  return strtoul(line, 0, 16);
}

int main(int argc, char **argv) {
  (void)argc;
  pid_t pid = fork();
  if (pid == 0) {
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    execv(argv[1], argv + 1);
    _exit(2);
  }
  int status;
  waitpid(pid, &status, 0);
  unsigned long start = base(pid);
  while (WIFSTOPPED(status)) {
    struct user_regs_struct registers;
    ptrace(PTRACE_GETREGS, pid, 0, &registers);
    if (registers.rip - start < LARGEST) counts[registers.rip - start]++;
    int signal = WSTOPSIG(status);
    ptrace(PTRACE_SINGLESTEP, pid, 0, signal == SIGTRAP ? 0 : signal);
    waitpid(pid, &status, 0);
  }
  for (unsigned i = 0; i < LARGEST; i++)
    if (counts[i]) printf("%u %u\n", i, counts[i]);
  return 0;
}
