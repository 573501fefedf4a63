// homes: the home heaps of two threads, without the threads.
#pragma once

#include "epoch/epoch.h"
#include "epoch/pool.h"
#include "epoch/scope.h"
#include "memory/growth.h"
#include "os_fake.h"
#include "test.h"

// The first one is current.
static inline void homes_open(size_t limit_bytes, struct tsl_heap **first,
                              struct tsl_heap **second) {
  os_fake.limit_bytes = limit_bytes;
  CHECK(tsl_region_init());
  tsl_epoch_init();
  tsl_scope_init();
  *first = tsl_heap_take();
  *second = tsl_heap_take();
  CHECK(*first != NULL && *second != NULL && *first != *second);
  tsl_heap_current = *first;
}
