#include "alloc/helper.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

#include "base/atomic.h"
#include "epoch/heap.h"
#include "epoch/pool.h"
#include "epoch/remains.h"
#include "memory/purge.h"
#include "os/os.h"

enum { STACK_BYTES = 64 * 1024, STEP_MS = 1 };

static uint32_t started;  // [remote] 1 from the first attempt on: one that fails is not repeated

static bool helper_step(void) {
  tsl_heap_look_at_pool();
  tsl_remains_step();
  return tsl_purge_tick() || tsl_remains_wait();
}

// While there is something to give back it steps as often as a step may come; else it looks once a
// delay.
static void *helper_run(void *nothing) {
  tsl_purge_set_helper(true);
  while (tsl_option(helper) != 0)
    tsl_purge_help(helper_step() ? STEP_MS : tsl_option(purge_delay_ms) + STEP_MS);
  tsl_purge_set_helper(false);
  tsl_store_relaxed(&started, 0);
  return nothing;
}

// The program's signals are none of the helper's.
static void helper_create(void) {
  pthread_t thread;
  pthread_attr_t attributes;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, STACK_BYTES);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_create(&thread, &attributes, helper_run, NULL);
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void tsl_helper_start(void) {
  if (tsl_load_relaxed(&started) != 0 || tsl_exchange_relaxed(&started, 1) != 0) return;
  int saved = errno;
  helper_create();
  errno = saved;
}

void tsl_helper_after_fork(void) {
  tsl_purge_set_helper(false);
  tsl_store_relaxed(&started, 0);
}
