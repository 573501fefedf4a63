// fork: the child has only the thread that forked; all others are lost. No lock is taken before a
// fork: a thread that holds one may wait for what the fork itself holds, such as a stream of stdio.
// The child sees a lost thread as if it had stopped between two instructions, with its stores in
// program order (the kernel copies all memory at one moment, as far as one thread can tell).
//
//  F1  what a lock guards can be mended from any state between two stores of its holder
//  F2  lock-free state is consistent between any two stores. A block that a lost thread was freeing
//      may leak, and its epoch then never drains
//  F3  a heap whose lost thread was in the middle of a change is left as it is (C1); all others go
//      to the pool (epoch/orphans.h)
//  F4  in the child nobody waits for a lost thread: its locks are taken over before, by the handler
//      below or by the first thread that comes to wait
#include "alloc/fork.h"

#include <pthread.h>

#include "alloc/helper.h"
#include "epoch/deferred.h"
#include "epoch/large_list.h"
#include "epoch/orphans.h"
#include "epoch/place.h"
#include "memory/growth.h"
#include "memory/segment.h"
#include "os/os.h"
#include "state/label.h"
#include "tell/sample.h"
#include "upkeep/remains.h"
#include "upkeep/reports.h"
#include "upkeep/rounds.h"

// TORN: the child of a fork, in which nothing was mended yet. MENDED: mended before the handler
// ran.
enum mark { TORN, WHOLE, MENDED };

static uint32_t no_mark = WHOLE;
static uint32_t *mark = &no_mark;  // enum mark, in a page that a fork wipes, where there are such

struct tsl_lock tsl_fork_init_lock = {.rank = TSL_RANK_INIT};
struct tsl_lock tsl_fork_rotation_lock = {.rank = TSL_RANK_ROTATION};

// F1, F4. The first two locks need no mending: an initialisation that was interrupted is done again
// from the start, and a rotation is valid between any two stores of a turn.
static void mend(void) {
  tsl_lock_take_over(&tsl_fork_init_lock);
  tsl_lock_take_over(&tsl_fork_rotation_lock);
  tsl_remains_after_fork();
  tsl_deferred_after_fork();
  tsl_labels_after_fork();
  tsl_place_after_fork();
  tsl_large_list_after_fork();
  tsl_region_after_fork();
  tsl_segments_after_fork();
  tsl_report_after_fork();
  tsl_sample_after_fork();
  tsl_rounds_after_fork();
  tsl_helper_after_fork();
  tsl_orphans_after_fork(tsl_heap_current->home);
}

// Mends as soon as a thread of the child waits for a lock. The handlers of other libraries may
// allocate before ours runs, and a child that a bare system call made runs no handlers.
static void notice(void) {
  uint32_t torn = TORN;
  if (tsl_load_relaxed(mark) == TORN && tsl_cas_relaxed(mark, &torn, MENDED)) mend();
}

static void fork_child(void) {
  if (tsl_load_relaxed(mark) != MENDED) mend();
  tsl_store_relaxed(mark, WHOLE);
  tsl_orphans_adopt();  // F3
}

static void mark_make(void) {
  if (mark != &no_mark) return;
  uint32_t *made = tsl_os_fork_mark();
  if (made == NULL) return;
  *made = WHOLE;
  mark = made;
  tsl_lock_waits = notice;
}

static bool handled = true;  // before the constructor too: the first malloc may come earlier

__attribute__((constructor)) static void fork_register(void) {
  mark_make();
  handled = pthread_atfork(NULL, NULL, fork_child) == 0;
}

bool tsl_fork_is_handled(void) {
  mark_make();
  return handled;
}
