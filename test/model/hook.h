// hook: put before every source of the core (-include), so that each atomic operation asks the
// model first. What atomic.h uses and this does not name, CMakeLists.txt refuses.
//
// Variables of a thread go to a section of their own, which the model swaps with the thread.
#pragma once

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "step.h"

#define __thread __attribute__((section("model_tls")))
#define tls_model(model) unused
#define abort model_abort
#define pthread_key_create model_key_create
#define pthread_setspecific model_setspecific

#define MODEL_TEXT_(line) #line
#define MODEL_TEXT(line) MODEL_TEXT_(line)
#define MODEL_SITE __FILE__ ":" MODEL_TEXT(__LINE__)

#define __atomic_load_n(p, order)                          \
  __extension__({                                          \
    __typeof__(p) model_p = (p);                           \
    model_step(model_p, MODEL_LOAD, MODEL_SITE);           \
    __auto_type model_v = __atomic_load_n(model_p, order); \
    model_loaded();                                        \
    model_v;                                               \
  })

#define __atomic_store_n(p, v, order)                                                         \
  __extension__({                                                                             \
    __typeof__(p) model_p = (p);                                                              \
    __typeof__(*(p)) model_v = (v);                                                           \
    model_step(model_p, MODEL_STORE, MODEL_SITE);                                             \
    if (!model_delays(model_p, (uint64_t)model_v)) __atomic_store_n(model_p, model_v, order); \
  })

#define MODEL_CHANGE(builtin, p, v, order)         \
  __extension__({                                  \
    __typeof__(p) model_p = (p);                   \
    __typeof__(*(p)) model_v = (v);                \
    model_step(model_p, MODEL_CHANGE, MODEL_SITE); \
    builtin(model_p, model_v, order);              \
  })
#define __atomic_exchange_n(p, v, order) MODEL_CHANGE(__atomic_exchange_n, p, v, order)
#define __atomic_fetch_or(p, v, order) MODEL_CHANGE(__atomic_fetch_or, p, v, order)
#define __atomic_fetch_and(p, v, order) MODEL_CHANGE(__atomic_fetch_and, p, v, order)
#define __atomic_fetch_add(p, v, order) MODEL_CHANGE(__atomic_fetch_add, p, v, order)
#define __atomic_fetch_sub(p, v, order) MODEL_CHANGE(__atomic_fetch_sub, p, v, order)

#define __atomic_compare_exchange_n(p, expected, v, weak, order, failed)                \
  __extension__({                                                                       \
    __typeof__(p) model_p = (p);                                                        \
    __typeof__(*(p)) model_v = (v);                                                     \
    model_step(model_p, MODEL_COMPARE, MODEL_SITE);                                     \
    bool model_done =                                                                   \
        __atomic_compare_exchange_n(model_p, (expected), model_v, weak, order, failed); \
    if (model_done) model_changed(model_p, MODEL_SITE);                                 \
    model_done;                                                                         \
  })

#define __atomic_thread_fence(order) model_fence(MODEL_SITE)
