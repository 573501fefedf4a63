// thread: the simulated threads, as coroutines. All of them lies in tracked memory.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model.h"
#include "step.h"

enum { MODEL_TLS_BYTES = 64 };

enum model_stop {
  MODEL_AT_STEP,    // an operation is next
  MODEL_AT_LOADED,  // what is next: the delayed store becomes visible
  MODEL_AT_AWAIT,
  MODEL_ENDED
};

struct model_thread {
  void *stack_pointer;
  void (*run)(void);
  enum model_stop stop;
  enum model_op op;  // next
  const char *site;  // of it
  const volatile void *address;
  const uint32_t *awaited;
  uint32_t *delayed;  // the store is not visible yet; NULL: there is none
  uint32_t delayed_value;
  bool delay;  // the next store is to be delayed
  _Alignas(16) unsigned char tls[MODEL_TLS_BYTES];
};

// Lays out the threads; once.
void model_threads_init(void);
struct model_thread *model_thread_at(int thread);

void model_thread_start(int thread, void (*run)(void));
// The one that runs; -1 for the explorer itself.
int model_thread_running(void);
// Lets a thread go on until it stops; what is left of its dead frames is wiped.
void model_thread_run(int thread);
bool model_thread_is_ready(int thread);
// Called by a thread: stops.
void model_thread_stop(enum model_stop stop, enum model_op op, const volatile void *address,
                       const char *site);
