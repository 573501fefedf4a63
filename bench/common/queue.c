#include "queue.h"

void queue_open(queue *q) {
  pthread_mutex_init(&q->lock, NULL);
  pthread_cond_init(&q->has_room, NULL);
  pthread_cond_init(&q->has_more, NULL);
  q->first = 0;
  q->count = 0;
}

void queue_push(queue *q, void *item) {
  pthread_mutex_lock(&q->lock);
  while (q->count == QUEUE_SLOTS) {
    pthread_cond_wait(&q->has_room, &q->lock);
  }
  q->slots[(q->first + q->count) % QUEUE_SLOTS] = item;
  q->count++;
  pthread_mutex_unlock(&q->lock);
  pthread_cond_signal(&q->has_more);
}

void *queue_pop(queue *q) {
  pthread_mutex_lock(&q->lock);
  while (q->count == 0) {
    pthread_cond_wait(&q->has_more, &q->lock);
  }
  void *item = q->slots[q->first];
  q->first = (q->first + 1) % QUEUE_SLOTS;
  q->count--;
  pthread_mutex_unlock(&q->lock);
  pthread_cond_signal(&q->has_room);
  return item;
}
