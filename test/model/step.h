// step: what the hooked core calls. Outside of a scenario's threads all of it does nothing.
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum model_op { MODEL_LOAD, MODEL_STORE, MODEL_CHANGE, MODEL_COMPARE, MODEL_FENCE };

// The calling thread is about to do `op`: others may run first.
void model_step(const volatile void *address, enum model_op op, const char *site);

// A load was done. A delayed store of the thread may become visible only after others ran.
void model_loaded(void);

// True when the model keeps the store back, as a processor's store buffer does.
bool model_delays(volatile void *address, uint64_t value);

// A comparison found what it expected, and changed it.
void model_changed(const volatile void *address, const char *site);

// The thread's delayed store becomes visible.
void model_fence(const char *site);

// Every thread's does.
void model_barrier(const char *site);

void model_abort(void) __attribute__((noreturn));
int model_key_create(pthread_key_t *key, void (*destructor)(void *));
int model_setspecific(pthread_key_t key, const void *value);
