// threads: the same function in several threads at once.
#pragma once

#include <pthread.h>

#include "test.h"

enum { THREADS = 4 };

static inline void threads_run(void *(*function)(void *), void *argument) {
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++) {
    CHECK_EQ(pthread_create(&threads[i], NULL, function, argument), 0);
  }
  for (int i = 0; i < THREADS; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
}

// One thread from its beginning to its end.
static inline void threads_run_one(void *(*function)(void *), void *argument) {
  pthread_t thread;
  CHECK_EQ(pthread_create(&thread, NULL, function, argument), 0);
  CHECK_EQ(pthread_join(thread, NULL), 0);
}
