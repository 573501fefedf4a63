// crew: threads that serve requests one after the other. Each request builds much, keeps a little
// of it, and ends; then all threads are idle for a while.
//   crew plain|epochs REQUESTS
// With `epochs` each request has an epoch, and what is kept is made outside. Prints the anonymous
// resident bytes at the highest peak, and at the lowest behind it.
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "resident.h"
#include "tslab.h"

enum {
  THREADS = 4,
  ROWS = 40000,
  KEPT = 4000,
  KEEPS_1_IN = 50,
  HOLD_MS = 20,
  PAUSE_MS = 60,
  LOOK_MS = 10,
  LAST_MS = 900
};

struct member {
  uint64_t state;
  void *rows[ROWS];
  void *kept[KEPT];
};

static struct member crew[THREADS];
static bool has_epochs;
static int requests;

static void sleep_ms(unsigned ms) { usleep(ms * 1000); }

static uint32_t random_below(struct member *me, uint32_t bound) {
  me->state = me->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(me->state >> 33) % bound;
}

// What is done with a result keeps a call from becoming a jump, which no stack would show.
__attribute__((noinline)) static void *row_make(struct member *me) {
  size_t bytes = 32 + random_below(me, 480);
  void *row = malloc(bytes);
  if (row == NULL) abort();
  return memset(row, 1, bytes);
}

__attribute__((noinline)) static int keep_row(struct member *me) {
  tslab_scope outside;
  uint32_t place = random_below(me, KEPT);
  if (has_epochs && tslab_scope_default(&outside) != 0) abort();
  free(me->kept[place]);
  me->kept[place] = row_make(me);
  if (has_epochs) tslab_scope_leave(&outside);
  return 1;
}

__attribute__((noinline)) static int answer(struct member *me) {
  int count = 0;
  for (int i = 0; i < ROWS; i++) {
    me->rows[i] = row_make(me);
    if (random_below(me, KEEPS_1_IN) == 0) count += keep_row(me);
  }
  sleep_ms(HOLD_MS);
  for (int i = 0; i < ROWS; i++) free(me->rows[i]);
  return count;
}

__attribute__((noinline)) static int request_serve(struct member *me) {
  tslab_scope here;
  tslab_epoch request = has_epochs ? tslab_epoch_open("request", NULL) : TSLAB_DEFAULT;
  if (has_epochs && tslab_scope_enter(&here, request) != 0) abort();
  int count = answer(me);
  if (has_epochs) tslab_scope_leave(&here);
  if (has_epochs) tslab_epoch_close(request);
  return count;
}

static void *member_work(void *argument) {
  struct member *me = argument;
  intptr_t done = 0;
  for (int i = 0; i < requests; i++) {
    done += request_serve(me);
    sleep_ms(PAUSE_MS);
  }
  sleep_ms(LAST_MS);
  return (void *)done;
}

int main(int count, char **arguments) {
  pthread_t threads[THREADS];
  struct resident resident = {0};
  if (count != 3) return 2;
  has_epochs = strcmp(arguments[1], "epochs") == 0;
  requests = atoi(arguments[2]);
  for (int i = 0; i < THREADS; i++) {
    crew[i].state = (uint64_t)i + 7;
    if (pthread_create(&threads[i], NULL, member_work, &crew[i]) != 0) abort();
  }
  for (int ms = requests * (HOLD_MS + PAUSE_MS) + LAST_MS; ms > 0; ms -= LOOK_MS) {
    resident_look(&resident, true);
    sleep_ms(LOOK_MS);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  resident_print(&resident);
  return 0;
}
