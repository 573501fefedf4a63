// gate: what many may be in, or one alone. Gates are only ever tried.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

struct gate {
  atomic_int in;  // how many are in; -1: one alone
};

static inline bool gate_enter(struct gate *gate) {
  int seen = atomic_load(&gate->in);
  while (seen >= 0)
    if (atomic_compare_exchange_weak(&gate->in, &seen, seen + 1)) return true;
  return false;
}

static inline void gate_leave(struct gate *gate) { atomic_fetch_sub(&gate->in, 1); }

static inline bool gate_take(struct gate *gate) {
  int nobody = 0;
  return atomic_compare_exchange_strong(&gate->in, &nobody, -1);
}

static inline void gate_give(struct gate *gate) { atomic_store(&gate->in, 0); }
