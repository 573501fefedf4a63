// fork: the child of a program with many threads is a program with one. Locks are held across the
// fork, so that it sees them free and what they guard whole; what is lock-free is whole at every
// instant, but that a block whose free was under way may be lost, and with it the end of its epoch.
// The heaps of the threads that the child does not have go to the pool, but for those whose thread
// was in the middle of a change: they are set aside with what they hold, and late frees of their
// blocks stay harmless.
#include "alloc/fork.h"

#include <pthread.h>

#include "alloc/helper.h"
#include "alloc/rotation.h"
#include "alloc/thread.h"
#include "epoch/label.h"
#include "epoch/large_list.h"
#include "epoch/pool.h"
#include "epoch/remains.h"
#include "epoch/report.h"
#include "epoch/sample.h"
#include "epoch/scope.h"
#include "memory/segment.h"

static void fork_prepare(void) {
  tsl_rotations_lock();
  tsl_thread_lock();
  tsl_remains_lock();
  tsl_labels_lock();
  tsl_large_list_lock();
  tsl_sample_lock();
  tsl_region_lock();
  tsl_segments_lock();
  tsl_mirror_lock();
}

static void fork_parent(void) {
  tsl_mirror_unlock();
  tsl_segments_unlock();
  tsl_region_unlock();
  tsl_sample_unlock();
  tsl_large_list_unlock();
  tsl_labels_unlock();
  tsl_remains_unlock();
  tsl_thread_unlock();
  tsl_rotations_unlock();
}

static void fork_child(void) {
  fork_parent();
  tsl_report_after_fork();
  tsl_sample_after_fork();
  tsl_heap_after_fork(tsl_heap_current->home);
  tsl_scope_after_fork();
  tsl_helper_after_fork();
}

static bool handled = true;  // until it is known otherwise: the first block may come before

__attribute__((constructor)) static void fork_register(void) {
  handled = pthread_atfork(fork_prepare, fork_parent, fork_child) == 0;
}

bool tsl_fork_is_handled(void) { return handled; }
