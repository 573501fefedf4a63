#include "alloc/stay.h"

#include <errno.h>

#include "alloc/face.h"
#include "alloc/malloc.h"
#include "epoch/keep.h"
#include "epoch/scope.h"

static void count_late(tslab_epoch epoch) {
  tsl_add_relaxed(&tsl_epoch_at(tsl_epoch_slot(epoch))->late, 1);
}

bool tsl_stay_begin(struct tsl_stay *stay, tslab_epoch epoch, bool counted) {
  stay->lease.home = NULL;
  if (epoch != TSLAB_DEFAULT) tsl_face_expect_epoch();
  int error = tsl_thread_ensure(&stay->lease) ? tsl_scope_enter(&stay->scope, epoch) : ENOMEM;
  if (tsl_likely(error == 0)) return true;
  if (error == ECANCELED && counted) count_late(epoch);
  tsl_thread_leave(&stay->lease);
  errno = error;
  return false;
}

void tsl_stay_end(struct tsl_stay *stay) {
  tsl_scope_leave(&stay->scope);
  tsl_thread_leave(&stay->lease);
}

void *tsl_malloc_beside(const void *block, size_t bytes) {
  uint32_t slot = tsl_keep_account(block);
  struct tsl_stay stay;
  if (slot == tsl_heap_current->epoch) return tsl_fast_malloc(bytes);
  uint64_t word = slot == 0 ? 0 : tsl_load_relaxed(&tsl_epoch_at(slot)->word);
  bool is_open = tsl_epoch_state(word) == TSL_EPOCH_OPEN;
  bool begun = is_open && tsl_stay_begin(&stay, tsl_epoch_id(slot, word), false);
  if (!begun && !tsl_stay_begin(&stay, TSLAB_DEFAULT, false)) return NULL;
  void *moved = tsl_fast_malloc(bytes);
  tsl_stay_end(&stay);
  return moved;
}
