// mailbox: holds one block for whoever comes by.
#ifndef TSLAB_TEST_MAILBOX_H
#define TSLAB_TEST_MAILBOX_H

#include <stdatomic.h>
#include <stdbool.h>

#include "shadow.h"

struct mailbox {
  atomic_bool taken;
  struct shadow block;
};

// Leaves the caller's block and takes the one that is there, unless another thread is at it.
static inline void mailbox_exchange(struct mailbox *mailbox, struct shadow *block) {
  if (atomic_exchange_explicit(&mailbox->taken, true, memory_order_acquire)) return;
  struct shadow mine = *block;
  *block = mailbox->block;
  mailbox->block = mine;
  atomic_store_explicit(&mailbox->taken, false, memory_order_release);
}

#endif
