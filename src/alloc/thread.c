#include "alloc/thread.h"

#include <errno.h>
#include <pthread.h>

#include "alloc/exit.h"
#include "alloc/face.h"
#include "alloc/fork.h"
#include "alloc/helper.h"
#include "base/lock.h"
#include "base/options.h"
#include "base/tools.h"
#include "epoch/open.h"
#include "epoch/poison.h"
#include "epoch/scope.h"
#include "heap/loose.h"
#include "memory/growth.h"
#include "memory/limit.h"
#include "observe/postmortem.h"
#include "os/os.h"
#include "state/change.h"
#include "upkeep/pool.h"

static bool ready;  // [lock:init, read by any]
static pthread_key_t exit_key;

// Set when the thread's destructor runs: it will not run again, so a home taken later must be given
// back after each call.
static TSL_TLS bool exiting;

void tsl_thread_give_back(struct tsl_home *home) {
  tsl_busy_begin();
  tsl_heap_current = &tsl_home_empty.heap;
  tsl_home_pool(home);
  tsl_busy_end();
}

// NULL when memory is out.
static struct tsl_home *home_enter(void) {
  tsl_busy_begin();
  struct tsl_home *home = tsl_home_take();
  if (home != NULL) tsl_heap_current = &home->heap;
  tsl_busy_end();
  return home;
}

// Later destructors may still allocate and free: allocations then borrow a heap for one call, and
// frees are those of a thread without a heap.
static void thread_exit(void *left) {
  struct tsl_home *home = left;
  tsl_loose_add_hot(home);
  exiting = true;
  if (tsl_heap_current != &home->heap || home->heap.depth != 0) tsl_scope_leave_all(home);
  tsl_thread_give_back(home);
}

static void options_read_locked(void) TSL_REQUIRES(tsl_fork_init_lock) {
  static bool are_read;
  if (are_read) return;
  tsl_options_init(tsl_os_environment);
  tsl_limit_follow();
  are_read = true;  // last: the child of a fork does again what was interrupted
}

void tsl_thread_read_options(void) {
  if (tsl_load_acquire(&ready)) return;  // pairs: library-init
  tsl_lock_acquire(&tsl_fork_init_lock);
  options_read_locked();
  tsl_lock_release(&tsl_fork_init_lock);
}

static bool library_init_locked(void) TSL_REQUIRES(tsl_fork_init_lock) {
  static bool prepared;
  if (!prepared) {
    tsl_face_begin();
    options_read_locked();
    tsl_face_look_for_first();
    prepared = pthread_key_create(&exit_key, thread_exit) == 0 && tsl_fork_is_handled() &&
               tsl_exit_is_handled();
    tsl_helper_init(tsl_thread_join);
  }
  if (!prepared || !tsl_region_init()) return false;
  tsl_tools_init();
  tsl_epoch_init();
  tsl_scope_init();
  tsl_poison_init();
  tsl_postmortem_tell();
  tsl_tend_is_possible = !tsl_scope_fences;
  tsl_store_release(&ready, true);  // pairs: library-init
  return true;
}

static bool library_init(void) {
  if (tsl_load_acquire(&ready)) return true;  // pairs: library-init
  tsl_lock_acquire(&tsl_fork_init_lock);
  bool done = ready || library_init_locked();
  tsl_lock_release(&tsl_fork_init_lock);
  return done;
}

bool tsl_thread_enter(struct tsl_lease *lease) {
  int saved = errno;
  struct tsl_home *home = library_init() ? home_enter() : NULL;
  if (home == NULL) return false;
  lease->home = exiting ? home : NULL;
  if (!exiting) pthread_setspecific(exit_key, home);
  errno = saved;
  return true;
}

bool tsl_thread_join(void) {
  struct tsl_lease lease;
  return !exiting && tsl_thread_enter(&lease);
}
