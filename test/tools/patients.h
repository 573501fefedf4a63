// patients: what the programs share at whose memory a doctor looks. Each takes the name of a
// situation, says "ready" when it is in it, goes on with what it does, and ends with its input.
#pragma once

#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct situation {
  const char *name;
  void (*run)(void);
};

static inline void *filled(size_t bytes) {
  void *block = malloc(bytes);
  if (block == NULL) abort();
  return memset(block, 1, bytes);
}

static inline void thread_start(void *(*run)(void *), void *argument) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, run, argument) != 0) abort();
}

static inline const struct situation *situation_of(const struct situation *all, const char *name) {
  while (all->name != NULL && strcmp(all->name, name) != 0) all++;
  return all;
}

// `all` ends with a name of NULL.
static inline int situation_main(int count, char **arguments, const struct situation *all) {
  if (count != 2) return 2;
  const struct situation *situation = situation_of(all, arguments[1]);
  if (situation->name == NULL) return 2;
  situation->run();
  puts("ready");
  fflush(stdout);
  while (getchar() != EOF) continue;
  return 0;
}
