// pool: heaps without a thread, and heaps without an epoch.
#pragma once

#include "epoch/heap.h"

// A home heap for the calling thread: a pooled one, still warm, or a new one. NULL when memory is
// out.
TSL_HIDDEN struct tsl_heap *tsl_heap_take(void);

// Puts the heap of a thread that ends into the pool, with all its blocks.
TSL_HIDDEN void tsl_heap_pool(struct tsl_heap *heap);

// A heap for an epoch, without cells or slabs: one that was sealed before, or a new one. NULL when
// memory is out. The home heap's owner only.
TSL_HIDDEN struct tsl_heap *tsl_heap_take_part(struct tsl_heap *home, uint32_t epoch);

// Takes back a heap that is empty and belongs to no epoch any more. Any thread.
TSL_HIDDEN void tsl_heap_give_part(struct tsl_heap *heap);

// Takes one off `holds`; the last one gives the heap back. Any thread.
TSL_HIDDEN void tsl_heap_let_go(struct tsl_heap *heap);

// Looks at what came back to one heap of the pool. Any thread; bounded.
TSL_HIDDEN void tsl_heap_look_at_pool(void);

// tsl_heap_collect for every heap that is in the pool, and for the calling thread's. Any thread.
TSL_HIDDEN void tsl_heap_collect_all(void);

// In the child of a fork: no heap is in the pool. Who was about to take one is not there any more.
TSL_HIDDEN void tsl_heap_forget_pool(void);
