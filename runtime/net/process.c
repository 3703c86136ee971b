/* What servers do to become one: daemons, children for connections, the log of the system. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <syslog.h>
#include <unistd.h>

#include "net/files.h"
#include "net/kernel.h"
#include "net/options.h"

/* Descriptor of AFL's fork servers: their own forks are real. */
#define CONTROL_FD 198

static int is_fork_server(void) {
  static int is_none;
  if (!is_none) is_none = ffuzz_kernel(SYS_fcntl, CONTROL_FD, F_GETFD, 0, 0, 0, 0) < 0;
  return !is_none;
}

/* The number of the process is the same in each run: programs take random numbers from it, and answer with it. */
static int has_number(void) { return ffuzz_net.role && !is_fork_server(); }

static pid_t own_number(void) { return (pid_t)REAL(getpid); }

PUBLIC pid_t getpid(void) { return has_number() ? NET_PID : own_number(); }
PUBLIC pid_t gettid(void) { return has_number() && REAL(gettid) == own_number() ? NET_PID : (pid_t)REAL(gettid); }
PUBLIC pid_t getppid(void) { return has_number() ? 1 : (pid_t)REAL(getppid); }

/* What a call says of this process. */
static pid_t kernels(pid_t number) { return number == NET_PID && has_number() ? own_number() : number; }

PUBLIC int kill(pid_t number, int signal_number) { return (int)REAL(kill, kernels(number), signal_number); }
PUBLIC int setpgid(pid_t number, pid_t group) { return (int)REAL(setpgid, kernels(number), kernels(group)); }
PUBLIC pid_t getpgid(pid_t number) { return (pid_t)REAL(getpgid, kernels(number)); }
PUBLIC pid_t getsid(pid_t number) { return (pid_t)REAL(getsid, kernels(number)); }

/* We are the child: of a daemon, and of a server with a process for each connection. The parent's part is not run. */
PUBLIC pid_t fork(void) {
  static pid_t (*real)(void);
  if (ffuzz_net.role && !is_fork_server()) return ffuzz_net_files_are_shared(), 0;
  if (!real) real = (pid_t(*)(void))dlsym(RTLD_NEXT, "fork");
  return real();
}

PUBLIC int daemon(int keeps_folder, int keeps_streams) {
  static int (*real)(int, int);
  if (ffuzz_net.role) return 0;
  if (!real) real = (int (*)(int, int))dlsym(RTLD_NEXT, "daemon");
  return real(keeps_folder, keeps_streams);
}

PUBLIC pid_t setsid(void) { return ffuzz_net.role ? getpid() : (pid_t)REAL(setsid); }

/* Inside libc these write to a socket of their own. */
PUBLIC void openlog(const char *name, int options, int facility) { (void)name, (void)options, (void)facility; }
PUBLIC void closelog(void) {}
PUBLIC void syslog(int priority, const char *format, ...) { (void)priority, (void)format; }
PUBLIC void vsyslog(int priority, const char *format, va_list list) { (void)priority, (void)format, (void)list; }
PUBLIC void __syslog_chk(int priority, int flag, const char *format, ...) { (void)priority, (void)flag, (void)format; }
PUBLIC void __vsyslog_chk(int priority, int flag, const char *format, va_list list) {
  (void)priority, (void)flag, (void)format, (void)list;
}
