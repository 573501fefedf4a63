// seal: the end of a heap whose epoch is closed. Its cells and slabs live on without it, until
// their last block is freed, by whomever: from then on every free is a remote one and counts down.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "epoch/heap.h"

// What was still in use when something ended.
struct tsl_survivors {
  size_t objects;
  size_t bytes;  // usable
  size_t pages;  // of 4 KiB, that the cells, slabs and large blocks of these objects keep
};

// True for who may seal the heap: once a life, and only while no scope is open in it.
TSL_HIDDEN bool tsl_heap_claim_seal(struct tsl_heap *heap);

// Seals a heap that was claimed and gives it back to its home. Its part of the epoch's `undrained`
// is settled.
TSL_HIDDEN void tsl_heap_seal(struct tsl_heap *heap, struct tsl_survivors *survivors);

// The same, and every block in it ends.
TSL_HIDDEN void tsl_heap_release(struct tsl_heap *heap);

// Gives back a slab of a sealed heap, whose blocks have ended; its epoch is drained by one. Any
// thread.
TSL_HIDDEN void tsl_heap_drained(struct tsl_slab *slab);
