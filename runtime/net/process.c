/* What servers do to become one: daemons, children for connections, the log of the system. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <syslog.h>
#include <unistd.h>

#include "net/files.h"
#include "net/kernel.h"
#include "net/options.h"

/* Descriptor of AFL's fork servers: their own forks are real. */
#define CONTROL_FD 198

static int is_fork_server(void) { return ffuzz_kernel(SYS_fcntl, CONTROL_FD, F_GETFD, 0, 0, 0, 0) >= 0; }

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

PUBLIC pid_t setsid(void) { return ffuzz_net.role ? (pid_t)REAL(getpid) : (pid_t)REAL(setsid); }

/* Inside libc these write to a socket of their own. */
PUBLIC void openlog(const char *name, int options, int facility) { (void)name, (void)options, (void)facility; }
PUBLIC void closelog(void) {}
PUBLIC void syslog(int priority, const char *format, ...) { (void)priority, (void)format; }
PUBLIC void vsyslog(int priority, const char *format, va_list list) { (void)priority, (void)format, (void)list; }
PUBLIC void __syslog_chk(int priority, int flag, const char *format, ...) { (void)priority, (void)flag, (void)format; }
PUBLIC void __vsyslog_chk(int priority, int flag, const char *format, va_list list) {
  (void)priority, (void)flag, (void)format, (void)list;
}
