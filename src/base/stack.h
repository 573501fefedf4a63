// stack: a lock-free stack of small numbers (Treiber 1986). The upper half of the head counts the
// changes, so that a pop cannot mistake a head that came back for one that never left. Links must
// stay readable for ever.
#pragma once

#include <stdint.h>

#include "base/atomic.h"

struct tsl_stack {
  uint64_t head;  // [remote] changes << 32 | number; 0 is "empty"
};

typedef uint32_t *tsl_stack_link(uint32_t number);

static inline void tsl_stack_push(struct tsl_stack *stack, uint32_t number, tsl_stack_link *link) {
  uint64_t head = tsl_load_relaxed(&stack->head), next;
  do {
    tsl_store_relaxed(link(number), (uint32_t)head);
    next = (head & ~UINT64_C(0xffffffff)) + (UINT64_C(1) << 32) + number;
  } while (!tsl_cas_release(&stack->head, &head, next));  // pairs: stack
}

// Empties the stack, in the child of a fork. There the only other user is the push or pop of this
// thread that a signal handler's fork may have interrupted: the count goes on, so that it fails and
// tries again.
static inline void tsl_stack_clear(struct tsl_stack *stack) {
  uint64_t head = tsl_load_relaxed(&stack->head);
  tsl_store_relaxed(&stack->head, (head | UINT32_MAX) + 1);
}

// 0 when the stack is empty.
static inline uint32_t tsl_stack_pop(struct tsl_stack *stack, tsl_stack_link *link) {
  uint64_t head = tsl_load_acquire(&stack->head), next;  // pairs: stack
  do {
    if ((uint32_t)head == 0) return 0;
    uint32_t below = tsl_load_relaxed(link((uint32_t)head));
    next = (head & ~UINT64_C(0xffffffff)) + (UINT64_C(1) << 32) + below;
  } while (!tsl_cas_acq_rel(&stack->head, &head, next));  // pairs: stack
  return (uint32_t)head;
}
