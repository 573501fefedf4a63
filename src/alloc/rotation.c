// rotation: epochs that follow each other (include/tslab.h).
#include "alloc/fork.h"
#include "base/atomic.h"
#include "base/lock.h"
#include "os/os.h"
#include "tslab.h"

static bool rotation_is_due(const tslab_rotation *rotation) {
  if (rotation->current == TSLAB_DEFAULT) return true;
  if (rotation->every_ms != 0 && tsl_os_now_ms() >= rotation->due_ms) return true;
  return rotation->every_requests != 0 && rotation->requests >= rotation->every_requests;
}

// Opens the next epoch; `*last` is the one to be closed. When a fork took a thread between the last
// two stores, `previous` is the current epoch: it is closed one turn later.
static tslab_epoch rotation_turn(tslab_rotation *rotation, tslab_epoch *last) {
  tslab_epoch next = tslab_epoch_open(rotation->label, rotation->options);
  if (next == TSLAB_NO_EPOCH) return TSLAB_NO_EPOCH;
  if (rotation->previous != rotation->current) *last = rotation->previous;  // pairs: rotation
  rotation->requests = 0;
  rotation->due_ms = tsl_os_now_ms() + rotation->every_ms;
  rotation->previous = rotation->current;
  tsl_compiler_fence();  // pairs: rotation
  rotation->current = next;
  return next;
}

static void close_last(tslab_epoch last) {
  if (last != TSLAB_DEFAULT) tslab_epoch_close(last);
}

tslab_epoch tslab_rotation_current(tslab_rotation *rotation) {
  tslab_epoch last = TSLAB_DEFAULT;
  tsl_lock_acquire(&tsl_fork_rotation_lock);
  tslab_epoch current =
      rotation_is_due(rotation) ? rotation_turn(rotation, &last) : rotation->current;
  rotation->requests++;
  tsl_lock_release(&tsl_fork_rotation_lock);
  close_last(last);
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
  rotation->current = TSLAB_DEFAULT;
  tsl_lock_release(&tsl_fork_rotation_lock);
  close_last(previous);
  close_last(current);
}
