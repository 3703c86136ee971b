/* Threads of a server. A run has one thread, or it could not be put back, and two runs would differ.
 *
 * A thread that is started before the first connection sleeps: mostly it waits for work that few sessions have. It starts
 * when another call needs it: something joins it, or wakes whoever waits for a condition. A thread that is started for a
 * connection is not one: we go on as that thread until it ends. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdint.h>

#include "net/options.h"
#include "net/session.h"

enum { MOST_SLEEPING = 64, MOST_NESTED = 8 };

struct sleeper {
  void *(*go)(void *);
  void *with, *result;
  pthread_t real;
  int is_started, is_over, is_detached;
};

static struct sleeper sleepers[MOST_SLEEPING];
static int count, sleeping;
/* Where a thread that we go on as was started. */
static struct {
  jmp_buf back;
  struct sleeper *as;
} nested[MOST_NESTED];
static int depth;

static void *next(const char *name) { return dlsym(RTLD_NEXT, name); }

static struct sleeper *sleeper_of(pthread_t thread) {
  uintptr_t at = (uintptr_t)thread, first = (uintptr_t)sleepers;
  return at >= first && at < first + sizeof sleepers ? (struct sleeper *)at : NULL;
}

static int create(pthread_t *thread, const pthread_attr_t *settings, void *(*go)(void *), void *with) {
  static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
  if (!real) real = (__typeof__(real))next("pthread_create");
  return real(thread, settings, go, with);
}

static void start(struct sleeper *one) {
  if (one->is_started || one->is_over) return;
  one->is_started = 1;
  sleeping--;
  create(&one->real, NULL, one->go, one->with);
  if (one->is_detached) pthread_detach(one->real);
}

static void start_all(void) {
  for (int i = 0; sleeping && i < count; i++) start(&sleepers[i]);
}

static void go_on_as(struct sleeper *one) {
  nested[depth].as = one;
  if (!setjmp(nested[depth++].back)) one->result = one->go(one->with);
  depth--;
  one->is_over = 1;
}

/* Its wrapper of pthread_create() expects a thread that begins at once, and by the number that it was given. */
static int has_sanitizer(void) {
  static const char *const names[] = {"__asan_init", "__msan_init", "__tsan_init"};
  for (int i = 0; i < 3; i++)
    if (dlsym(RTLD_DEFAULT, names[i])) return 1;
  return 0;
}

PUBLIC int pthread_create(pthread_t *thread, const pthread_attr_t *settings, void *(*go)(void *), void *with) {
  int is_server = ffuzz_net.role == ROLE_SERVER, is_of_connection = ffuzz_net.protocol != UDP && ffuzz_net_has_begun();
  if (!is_server || count == MOST_SLEEPING || (is_of_connection && depth == MOST_NESTED))
    return create(thread, settings, go, with);
  if (has_sanitizer()) {
    if (is_of_connection) ffuzz_net_note_word(NET_REFUSED, "a thread for a connection beside a sanitizer");
    return create(thread, settings, go, with);
  }
  struct sleeper *one = &sleepers[count++];
  *one = (struct sleeper){.go = go, .with = with};
  if (settings) pthread_attr_getdetachstate(settings, &one->is_detached);
  *thread = (pthread_t)(uintptr_t)one;
  if (is_of_connection)
    go_on_as(one);
  else
    sleeping++;
  return 0;
}

PUBLIC void pthread_exit(void *result) {
  static void (*real)(void *) __attribute__((noreturn));
  if (depth) {
    nested[depth - 1].as->result = result;
    longjmp(nested[depth - 1].back, 1);
  }
  if (!real) real = (__typeof__(real))next("pthread_exit");
  real(result);
}

PUBLIC int pthread_join(pthread_t thread, void **result) {
  static int (*real)(pthread_t, void **);
  struct sleeper *one = sleeper_of(thread);
  if (!real) real = (__typeof__(real))next("pthread_join");
  if (!one) return real(thread, result);
  if (one->is_over) {
    if (result) *result = one->result;
    return 0;
  }
  start_all(); /* one of the others may be what it waits for */
  return real(one->real, result);
}

PUBLIC int pthread_detach(pthread_t thread) {
  static int (*real)(pthread_t);
  struct sleeper *one = sleeper_of(thread);
  if (!real) real = (__typeof__(real))next("pthread_detach");
  if (!one) return real(thread);
  one->is_detached = 1;
  return one->is_started ? real(one->real) : 0;
}

PUBLIC int pthread_cancel(pthread_t thread) {
  static int (*real)(pthread_t);
  struct sleeper *one = sleeper_of(thread);
  if (!real) real = (__typeof__(real))next("pthread_cancel");
  if (!one) return real(thread);
  if (one->is_started) return real(one->real);
  sleeping -= !one->is_over;
  one->is_over = 1;
  one->result = PTHREAD_CANCELED;
  return 0;
}

/* Of a thread that sleeps, names, cores and signals do not matter. */
#define OF_THREAD(NAME, PARAMETERS, ARGUMENTS)                     \
  PUBLIC int NAME PARAMETERS {                                     \
    static int(*real) PARAMETERS;                                  \
    struct sleeper *one = sleeper_of(thread);                      \
    if (one && !one->is_started) return 0;                         \
    if (one) thread = one->real;                                   \
    if (!real) real = (__typeof__(real))next(#NAME);               \
    return real ARGUMENTS;                                         \
  }

OF_THREAD(pthread_setname_np, (pthread_t thread, const char *name), (thread, name))
OF_THREAD(pthread_kill, (pthread_t thread, int number), (thread, number))
OF_THREAD(pthread_setaffinity_np, (pthread_t thread, size_t size, const cpu_set_t *set), (thread, size, set))
OF_THREAD(pthread_setschedparam, (pthread_t thread, int policy, const struct sched_param *to), (thread, policy, to))

/* glibc has two kinds of conditions; the newer one is what programs are linked with. */
static void *condition(const char *name) {
  void *real = dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");
  return real ? real : next(name);
}

PUBLIC int pthread_cond_signal(pthread_cond_t *at) {
  static int (*real)(pthread_cond_t *);
  start_all();
  if (!real) real = (__typeof__(real))condition("pthread_cond_signal");
  return real(at);
}

PUBLIC int pthread_cond_broadcast(pthread_cond_t *at) {
  static int (*real)(pthread_cond_t *);
  start_all();
  if (!real) real = (__typeof__(real))condition("pthread_cond_broadcast");
  return real(at);
}

PUBLIC int sem_post(sem_t *at) {
  static int (*real)(sem_t *);
  start_all();
  if (!real) real = (__typeof__(real))next("sem_post");
  return real(at);
}
