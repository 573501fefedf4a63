// A bounded queue of pointers for any number of threads, with a lock, as programs have them.
#ifndef BENCH_QUEUE_H
#define BENCH_QUEUE_H

#include <pthread.h>

#define QUEUE_SLOTS 64u

typedef struct queue {
  pthread_mutex_t lock;
  pthread_cond_t has_room;
  pthread_cond_t has_more;
  unsigned first;
  unsigned count;
  void *slots[QUEUE_SLOTS];
} queue;

void queue_open(queue *q);
void queue_push(queue *q, void *item);
void *queue_pop(queue *q);

#endif
