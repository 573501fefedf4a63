// fork: the child of a program with many threads is a program with one. Nothing is locked before a
// fork: whoever waits then may hold what the fork itself waits for, such as a stream of stdio. The
// child sees every other thread as if it had ended between two instructions, with its stores in
// their order (the kernel copies all memory at one moment, as far as one thread can tell).
//
//  F1  what a lock guards can be mended from any state between two stores of its holder
//  F2  what is lock-free is whole at every instant, but that a block whose free was under way may
//      be lost, and with it the end of its epoch
//  F3  a heap whose thread is changing more than a word or two says so (`inside`): the child sets
//      it aside; every other heap goes to the pool (epoch/orphans.h)
//  F4  who waits for a lock in the child waits for a thread that it has: the locks of the others
//      are taken over before, by the handler below or by who comes to wait first
#include "alloc/fork.h"

#include <pthread.h>

#include "alloc/helper.h"
#include "epoch/label.h"
#include "epoch/large_list.h"
#include "epoch/orphans.h"
#include "epoch/remains.h"
#include "epoch/report.h"
#include "epoch/sample.h"
#include "memory/growth.h"
#include "memory/segment.h"
#include "os/os.h"

// TORN: in the child of a fork, and nobody has mended anything. MENDED: the handler has still to
// run.
enum mark { TORN, WHOLE, MENDED };

static uint32_t no_mark = WHOLE;
static uint32_t *mark = &no_mark;  // enum mark; not wiped where the system does not know how

struct tsl_lock tsl_fork_init_lock, tsl_fork_rotation_lock;

// Who was initialising had not handed out anything: it is done again from the start. A rotation is
// whole between any two stores of a turn.
static void mend(void) {
  tsl_lock_take_over(&tsl_fork_init_lock);
  tsl_lock_take_over(&tsl_fork_rotation_lock);
  tsl_remains_after_fork();
  tsl_labels_after_fork();
  tsl_large_list_after_fork();
  tsl_region_after_fork();
  tsl_segments_after_fork();
  tsl_report_after_fork();
  tsl_sample_after_fork();
  tsl_helper_after_fork();
  tsl_orphans_after_fork(tsl_heap_current->home);
}

// The handlers of other libraries may allocate before ours runs, and a child that was made by a
// bare system call has none.
static void notice(void) {
  uint32_t torn = TORN;
  if (tsl_load_relaxed(mark) == TORN && tsl_cas_relaxed(mark, &torn, MENDED)) mend();
}

static void fork_child(void) {
  if (tsl_load_relaxed(mark) != MENDED) mend();
  tsl_store_relaxed(mark, WHOLE);
  tsl_orphans_adopt();
}

static void mark_make(void) {
  if (mark != &no_mark) return;
  uint32_t *made = tsl_os_fork_mark();
  if (made == NULL) return;
  *made = WHOLE;
  mark = made;
  tsl_lock_waits = notice;
}

static bool handled = true;  // until it is known otherwise: the first block may come before

__attribute__((constructor)) static void fork_register(void) {
  mark_make();
  handled = pthread_atfork(NULL, NULL, fork_child) == 0;
}

bool tsl_fork_is_handled(void) {
  mark_make();
  return handled;
}
