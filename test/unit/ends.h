// ends: what a thread calls when it ends, after the library's own destructor ran.
#pragma once

#include "alloc/malloc.h"
#include "threads.h"

static void (*ends_last)(void);

static inline void ends_run(void *unused) {
  (void)unused;
  CHECK(tsl_heap_current == &tsl_home_empty.heap);
  ends_last();
  CHECK(tsl_heap_current == &tsl_home_empty.heap);
}

static inline void *ends_begin(void *key) {
  tsl_fast_free(tsl_fast_malloc(1));
  CHECK_EQ(pthread_setspecific(*(pthread_key_t *)key, key), 0);
  return NULL;
}

// The library's key is the older one, so that its destructor comes first. What `last` borrows goes
// back.
static inline void ends_with(void (*last)(void)) {
  pthread_key_t key;
  tsl_fast_free(tsl_fast_malloc(1));
  CHECK_EQ(pthread_key_create(&key, ends_run), 0);
  ends_last = last;
  threads_run_one(ends_begin, &key);
  CHECK_EQ(pthread_key_delete(key), 0);
}
