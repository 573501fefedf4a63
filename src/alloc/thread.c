#include "alloc/thread.h"

#include <errno.h>
#include <pthread.h>

#include "alloc/exit.h"
#include "alloc/face.h"
#include "alloc/fork.h"
#include "base/lock.h"
#include "base/options.h"
#include "epoch/pool.h"
#include "epoch/scope.h"
#include "memory/growth.h"
#include "os/os.h"

static bool ready;  // [lock:init, read by any]
static pthread_key_t exit_key;

// Set once the thread's destructor ran: from then on nobody may tell us of the thread's end.
static TSL_TLS bool exiting;

static void heap_leave(struct tsl_heap *heap) {
  tsl_busy_begin();
  tsl_heap_current = &tsl_heap_empty;
  tsl_heap_pool(heap);
  tsl_busy_end();
}

// NULL when memory is out.
static struct tsl_heap *heap_enter(void) {
  tsl_busy_begin();
  struct tsl_heap *heap = tsl_heap_take();
  if (heap != NULL) tsl_heap_current = heap;
  tsl_busy_end();
  return heap;
}

// Later destructors may still allocate and free: allocations then borrow a heap for one call, and
// frees are those of a thread without a heap.
static void thread_exit(void *heap) {
  exiting = true;
  if (tsl_heap_current != heap || tsl_heap_current->depth != 0) tsl_scope_leave_all(heap);
  heap_leave(heap);
}

static bool library_init_locked(void) {
  static bool prepared;
  if (!prepared) {
    tsl_face_begin();
    tsl_options_init(tsl_os_environment);
    tsl_face_look_for_first();
    prepared = pthread_key_create(&exit_key, thread_exit) == 0 && tsl_fork_is_handled() &&
               tsl_exit_is_handled();
  }
  if (!prepared || !tsl_region_init()) return false;
  tsl_epoch_init();
  tsl_scope_init();
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
  struct tsl_heap *heap = library_init() ? heap_enter() : NULL;
  if (heap == NULL) return false;
  lease->heap = exiting ? heap : NULL;
  if (!exiting) pthread_setspecific(exit_key, heap);
  errno = saved;
  return true;
}

bool tsl_thread_join(void) {
  struct tsl_lease lease;
  return !exiting && tsl_thread_enter(&lease);
}

void tsl_thread_leave(struct tsl_lease *lease) {
  if (lease->heap != NULL) heap_leave(lease->heap);
}
