// One place where a thread leaves something and takes what another left there.
#ifndef BENCH_MAILBOX_H
#define BENCH_MAILBOX_H

#include <stdatomic.h>

typedef struct mailbox {
  _Alignas(64) _Atomic(void *) content;
} mailbox;

static inline void *mailbox_swap(mailbox *m, void *content) {
  return atomic_exchange_explicit(&m->content, content, memory_order_acq_rel);
}

#endif
