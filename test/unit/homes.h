// homes: the home heaps of two threads, without the threads.
#pragma once

#include "epoch/open.h"
#include "epoch/scope.h"
#include "memory/growth.h"
#include "os_fake.h"
#include "state/epoch.h"
#include "test.h"
#include "upkeep/pool.h"

// The first one is current.
static inline void homes_open(size_t limit_bytes, struct tsl_heap **first,
                              struct tsl_heap **second) {
  os_fake.limit_bytes = limit_bytes;
  CHECK(tsl_region_init());
  tsl_epoch_init();
  tsl_scope_init();
  struct tsl_home *one = tsl_home_take(), *other = tsl_home_take();
  CHECK(one != NULL && other != NULL && one != other);
  if (one == NULL || other == NULL) exit(EXIT_FAILURE);
  *first = &one->heap;
  *second = &other->heap;
  tsl_heap_current = *first;
}
