#include "alloc/thread.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>

#include "base/check.h"
#include "base/lock.h"
#include "base/options.h"
#include "os/os.h"

static struct tsl_lock init_lock;
static bool ready;  // [lock:init, read by any]
static pthread_key_t exit_key;

// After the last round of destructors nobody tells us of the thread's end any more.
static TSL_TLS bool last_round_over;

// Other destructors may still allocate and free: the heap stays until the last round that the
// system promises.
static void thread_exit(void *value) {
  struct tsl_heap *heap = value;
  if (++heap->exit_rounds < TSL_EXIT_ROUNDS) {
    pthread_setspecific(exit_key, heap);
    return;
  }
  tsl_heap_current = &tsl_heap_empty;
  last_round_over = true;
  tsl_heap_pool(heap);
}

static bool library_init_locked(void) {
  static bool prepared;
  if (!prepared) {
    tsl_options_init(tsl_os_environment);
    prepared = pthread_key_create(&exit_key, thread_exit) == 0;
  }
  if (!prepared || !tsl_region_init()) return false;
  tsl_store_release(&ready, true);  // pairs: library-init
  return true;
}

static bool library_init(void) {
  if (tsl_load_acquire(&ready)) return true;  // pairs: library-init
  tsl_lock_acquire(&init_lock);
  bool done = ready || library_init_locked();
  tsl_lock_release(&init_lock);
  return done;
}

bool tsl_thread_enter(struct tsl_lease *lease) {
  int saved = errno;
  struct tsl_heap *heap = library_init() ? tsl_heap_take() : NULL;
  if (heap == NULL) return false;
  lease->heap = last_round_over ? heap : NULL;
  tsl_heap_current = heap;
  if (!last_round_over) pthread_setspecific(exit_key, heap);
  errno = saved;
  return true;
}

void tsl_thread_leave(struct tsl_lease *lease) {
  if (lease->heap == NULL) return;
  tsl_heap_current = &tsl_heap_empty;
  tsl_heap_pool(lease->heap);
}

void tsl_thread_lock(void) { tsl_lock_acquire(&init_lock); }
void tsl_thread_unlock(void) { tsl_lock_release(&init_lock); }
