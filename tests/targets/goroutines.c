/* Like a program of Go: it has Go's mark, and a thread that starts before the input is read has to answer before
 * the program ends. A child of a fork server at the first read has no such thread, and waits without end. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

const char mark[] = "\xff Go buildinf:";

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int asked, answered;

static void *answer(void *unused) {
  pthread_mutex_lock(&lock);
  while (!asked) pthread_cond_wait(&changed, &lock);
  answered = 1;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  return unused;
}

int main(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, answer, NULL);
  char text[16] = {0};
  size_t length = fread(text, 1, sizeof text - 1, stdin);
  pthread_mutex_lock(&lock);
  asked = 1;
  pthread_cond_broadcast(&changed);
  while (!answered) pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
  if (text[0] == 'G') abort();
  return !(mark[length % sizeof mark] || length);
}
