// tellers: two threads whose heaps tell of themselves.
#pragma once

#include "alloc/malloc.h"
#include "homes.h"
#include "state/owner.h"
#include "tell/heaps.h"

static struct tsl_heap *mine, *other;

static inline void open_homes(void) { homes_open((size_t)1 << 28, &mine, &other); }

static inline void *alloc(size_t bytes) {
  void *block = tsl_fast_malloc(bytes);
  CHECK(block != NULL);
  return block;
}

static inline void alloc_many(size_t bytes, unsigned count) {
  for (unsigned i = 0; i < count; i++) alloc(bytes);
}

static inline void be(struct tsl_heap *home) { tsl_heap_current = home; }

// As who has claimed both would.
static inline void tell(void) {
  struct tsl_heap *both[] = {mine, other};
  for (int i = 0; i < 2; i++) {
    tsl_owner_act_for(both[i]->home);
    tsl_report_heap(both[i]);
  }
  tsl_owner_act_for(NULL);
}
