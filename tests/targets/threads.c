/* Eight threads that change keys of their own and keys of all, as fast as they can. */
#include <pthread.h>

#include "waypoints.h"

#define THREADS 8
#define KEYS 2000

FUZZFACTORY_DSF_NEW(own, THREADS * KEYS, FUZZFACTORY_REDUCER_MAX, 0);
FUZZFACTORY_DSF_NEW(common, KEYS, FUZZFACTORY_REDUCER_MAX, 0);

static pthread_barrier_t start;

static void *work(void *number) {
  unsigned first = (unsigned)(size_t)number * KEYS;
  pthread_barrier_wait(&start);
  for (unsigned i = 0; i < KEYS; i++) {
    FUZZFACTORY_DSF_INC(own, first + i, 1);
    FUZZFACTORY_DSF_MAX(common, i, 7);
  }
  return NULL;
}

int main(void) {
  pthread_t threads[THREADS];
  pthread_barrier_init(&start, NULL, THREADS);
  for (size_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)i);
  for (size_t i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  return 0;
}
