// rotation: epochs that follow each other (include/tslab.h). Turns are made under a lock, which
// nobody takes who asks for the current epoch before a turn is due. All rotations have the same
// one, so that a fork finds it (docs/decisions/042-rotations-share-a-lock.md).
#include "alloc/fork.h"
#include "base/atomic.h"
#include "base/lock.h"
#include "os/os.h"
#include "tslab.h"

// `asked`: calls of _current that the current epoch has had.
static bool rotation_is_due(const tslab_rotation *rotation, uint64_t asked) {
  bool is_late = rotation->every_ms != 0 && tsl_os_now_ms() >= tsl_load_relaxed(&rotation->due_ms);
  return is_late || (rotation->every_requests != 0 && asked >= rotation->every_requests);
}

// How many calls came before this one.
static uint64_t rotation_count(tslab_rotation *rotation) {
  return rotation->every_requests == 0 ? 0 : tsl_add_relaxed(&rotation->requests, 1);
}

// Opens the next epoch; `*last` is the one to be closed. When a fork took a thread between the last
// two stores, `previous` is the current epoch: it is closed one turn later.
static tslab_epoch rotation_turn(tslab_rotation *rotation, tslab_epoch *last) {
  tslab_epoch next = tslab_epoch_open(rotation->label, rotation->options);
  if (next == TSLAB_NO_EPOCH) return TSLAB_NO_EPOCH;
  if (rotation->previous != rotation->current) *last = rotation->previous;
  tsl_store_relaxed(&rotation->requests, 0);
  tsl_store_relaxed(&rotation->due_ms, tsl_os_now_ms() + rotation->every_ms);
  rotation->previous = rotation->current;
  tsl_store_release(&rotation->current, next);  // pairs: rotation
  return next;
}

// Another thread may have turned it since the caller looked.
static tslab_epoch rotation_turn_if_due(tslab_rotation *rotation, tslab_epoch *last) {
  bool is_new = rotation->current == TSLAB_DEFAULT;
  bool is_due = is_new || rotation_is_due(rotation, tsl_load_relaxed(&rotation->requests));
  if (!is_due) return rotation->current;
  tslab_epoch next = rotation_turn(rotation, last);
  rotation_count(rotation);
  return next;
}

static void close_last(tslab_epoch last) {
  if (last != TSLAB_DEFAULT) tslab_epoch_close(last);
}

TSL_NOINLINE static tslab_epoch current_slow(tslab_rotation *rotation) {
  tslab_epoch last = TSLAB_DEFAULT;
  tsl_lock_acquire(&tsl_fork_rotation_lock);
  tslab_epoch current = rotation_turn_if_due(rotation, &last);
  tsl_lock_release(&tsl_fork_rotation_lock);
  close_last(last);
  return current;
}

tslab_epoch tslab_rotation_current(tslab_rotation *rotation) {
  tslab_epoch current = tsl_load_acquire(&rotation->current);  // pairs: rotation
  if (current == TSLAB_DEFAULT || rotation_is_due(rotation, rotation_count(rotation)))
    return current_slow(rotation);
  return current;
}

tslab_epoch tslab_rotation_advance(tslab_rotation *rotation) {
  tslab_epoch last = TSLAB_DEFAULT;
  tsl_lock_acquire(&tsl_fork_rotation_lock);
  tslab_epoch current = rotation_turn(rotation, &last);
  tsl_lock_release(&tsl_fork_rotation_lock);
  close_last(last);
  return current;
}

void tslab_rotation_end(tslab_rotation *rotation) {
  tsl_lock_acquire(&tsl_fork_rotation_lock);
  tslab_epoch previous = rotation->previous, current = rotation->current;
  rotation->previous = TSLAB_DEFAULT;
  tsl_store_relaxed(&rotation->current, TSLAB_DEFAULT);
  tsl_lock_release(&tsl_fork_rotation_lock);
  close_last(previous);
  close_last(current);
}
