#include "state/change.h"

#include "base/lock.h"
#include "os/os.h"

bool tsl_tend_is_possible;

// In the child of a fork the helper may be lost: waiting mends, as it does for locks.
void tsl_change_wait(const struct tsl_home *home) {
  while (tsl_load_acquire(&home->tended) != 0) {  // pairs: tend
    tsl_lock_waits();
    tsl_os_yield();
  }
}

static bool is_mine(const struct tsl_part *part) {
  return part->heap.home == tsl_heap_current->home;
}

void tsl_change_shut(struct tsl_part *part) {
  if (is_mine(part)) return;
  tsl_store_release(&part->shut, 1);  // pairs: shut
  tsl_compiler_fence();               // pairs: shut
  tsl_change_wait(part->heap.home);
}

void tsl_change_reopen(struct tsl_part *part) {
  if (!is_mine(part)) tsl_store_release(&part->shut, 0);  // pairs: shut
}

bool tsl_change_is_shut(const struct tsl_part *part) {
  return tsl_load_acquire(&part->shut) != 0;  // pairs: shut
}

bool tsl_tend_begin(struct tsl_home *home) {
  if (!tsl_tend_is_possible) return false;
  tsl_store_relaxed(&home->tended, 1);
  tsl_fence_seq_cst();  // pairs: tend
  tsl_os_barrier();
  if (tsl_load_acquire(&home->changing) == 0) return true;  // pairs: tend
  tsl_tend_end(home);
  return false;
}

void tsl_tend_end(struct tsl_home *home) {
  tsl_store_release(&home->tended, 0);  // pairs: tend
}
