#include "epoch/deferred.h"

#include <errno.h>

#include "base/lock.h"
#include "epoch/open.h"
#include "heap/freed.h"
#include "heap/hold.h"
#include "upkeep/refill.h"

struct tsl_deferred {
  struct tsl_deferred *next;
  void (*run)(void *);
  void *argument;
  uint64_t number;  // 0: none
};

// The list of an epoch that has ended.
static struct tsl_deferred ended;

static struct tsl_lock deferred_lock = {.rank = TSL_RANK_DEFERRED};
static uint64_t last_deferred;  // [remote]

static void record_free(struct tsl_deferred *record) {
  tsl_heap_put_any(tsl_map_lookup(record), record);
}

// False when the epoch has ended.
static bool push(struct tsl_epoch *epoch, struct tsl_deferred *record) {
  struct tsl_deferred *first = tsl_load_relaxed(&epoch->deferred);
  do {
    if (first == &ended) return false;
    record->next = first;
  } while (!tsl_cas_release(&epoch->deferred, &first, record));  // pairs: deferred
  return true;
}

// The epoch is held, so that its slot is not another one's meanwhile.
static int add_held(struct tsl_epoch *epoch, struct tsl_deferred call, uint64_t *number) {
  unsigned class = tsl_sizeclass_of(sizeof call);
  struct tsl_deferred *record = tsl_heap_pop(&tsl_heap_current->home->heap, class);
  if (record == NULL) return ENOMEM;
  if (number != NULL) *number = call.number = tsl_add_relaxed(&last_deferred, 1) + 1;
  *record = call;
  if (push(epoch, record)) return 0;
  record_free(record);
  return ECANCELED;
}

int tsl_deferred_add(tslab_epoch id, void (*run)(void *), void *argument, uint64_t *number) {
  uint32_t slot = tsl_epoch_slot(id);
  int error = id == TSLAB_DEFAULT ? EPERM : tsl_epoch_check(id);
  if (error != 0) return error;
  if (!tsl_epoch_hold(slot)) return ESTALE;
  tsl_fence_seq_cst();  // pairs: deferred
  error = tsl_epoch_check(id);
  struct tsl_deferred call = {NULL, run, argument, 0};
  if (error == 0) error = add_held(tsl_epoch_at(slot), call, number);
  tsl_epoch_drain(slot, 1);
  return error;
}

// A call, and the link that leads to it: the first one's is the epoch's.
static struct tsl_deferred *record_find(struct tsl_epoch *epoch, uint64_t number,
                                        struct tsl_deferred ***link) {
  *link = &epoch->deferred;
  struct tsl_deferred *at = tsl_load_acquire(*link);  // pairs: deferred
  while (at != NULL && at != &ended && at->number != number) {
    *link = &at->next;
    at = at->next;
  }
  return at == &ended ? NULL : at;
}

// D1: takes a call off the list, under the lock; NULL when it is not there. Where it was the first,
// another one may have been registered meanwhile, or the end of the epoch has come.
static struct tsl_deferred *take_out(struct tsl_epoch *epoch, uint64_t number) {
  struct tsl_deferred **link, *record, *first;
  do {
    record = first = record_find(epoch, number, &link);
    if (record == NULL || link != &epoch->deferred) break;
  } while (!tsl_cas_relaxed(link, &first, record->next));
  if (record != NULL && link != &epoch->deferred) *link = record->next;
  return record;
}

bool tsl_deferred_cancel(tslab_epoch id, uint64_t number) {
  uint32_t slot = tsl_epoch_slot(id);
  struct tsl_deferred *record = NULL;
  if (number == 0 || tsl_epoch_check(id) != 0 || !tsl_epoch_hold(slot)) return false;
  tsl_lock_acquire(&deferred_lock);
  if (tsl_epoch_check(id) == 0) record = take_out(tsl_epoch_at(slot), number);
  tsl_lock_release(&deferred_lock);
  if (record != NULL) record_free(record);
  tsl_epoch_drain(slot, 1);
  return record != NULL;
}

void tsl_deferred_run_all(struct tsl_epoch *epoch) {
  struct tsl_deferred *first = tsl_exchange_acquire(&epoch->deferred, &ended);  // pairs: deferred
  if (first == NULL) return;
  tsl_lock_acquire(&deferred_lock);  // D2
  tsl_lock_release(&deferred_lock);
  for (struct tsl_deferred *record = first, *next; record != NULL; record = next) {
    next = record->next;
    record->run(record->argument);
    record_free(record);
  }
}

void tsl_deferred_renew(uint32_t slot) { tsl_store_relaxed(&tsl_epoch_at(slot)->deferred, NULL); }

void tsl_deferred_after_fork(void) { tsl_lock_take_over(&deferred_lock); }
