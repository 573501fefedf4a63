#include "threads.h"

#include "clock.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct crew {
  threads_body body;
  void *context;
  pthread_barrier_t start;
} crew;

typedef struct member {
  crew *crew;
  unsigned index;
  uint64_t start_ns;
  uint64_t end_ns;
} member;

static void *member_main(void *argument) {
  member *m = argument;
  pthread_barrier_wait(&m->crew->start);
  m->start_ns = clock_ns();
  m->crew->body(m->crew->context, m->index);
  m->end_ns = clock_ns();
  return NULL;
}

static void threads_check(int error) {
  if (error != 0) {
    fprintf(stderr, "cannot run threads: error %d\n", error);
    exit(1);
  }
}

static uint64_t members_elapsed_ns(const member *members, unsigned count) {
  uint64_t first = members[0].start_ns;
  uint64_t last = members[0].end_ns;
  for (unsigned i = 1; i < count; i++) {
    first = members[i].start_ns < first ? members[i].start_ns : first;
    last = members[i].end_ns > last ? members[i].end_ns : last;
  }
  return last - first;
}

uint64_t threads_run(unsigned count, threads_body body, void *context) {
  pthread_t threads[THREADS_MAX];
  member members[THREADS_MAX];
  crew team = {.body = body, .context = context};
  threads_check(pthread_barrier_init(&team.start, NULL, count));
  for (unsigned i = 0; i < count; i++) {
    members[i] = (member){.crew = &team, .index = i};
    threads_check(pthread_create(&threads[i], NULL, member_main, &members[i]));
  }
  for (unsigned i = 0; i < count; i++) {
    threads_check(pthread_join(threads[i], NULL));
  }
  pthread_barrier_destroy(&team.start);
  return members_elapsed_ns(members, count);
}
