#include "state/heap.h"

TSL_RELRO struct tsl_free_block tsl_bin_end = {.mark = 0, .link = UINTPTR_MAX};

TSL_RELRO struct tsl_store tsl_store_empty = {
    .stocks =
        {
#define TINY(least, bytes) [TSL_CLASS_OF_##bytes] = {.block_bytes = (bytes)},
#define MEDIUM(bytes, units) [TSL_CLASS_OF_##bytes] = {.block_bytes = (bytes)},
#include "slab/sizeclass.def"
#undef TINY
#undef MEDIUM
        },
};

// No unit is ever cached here.
TSL_RELRO struct tsl_home tsl_home_empty = {
    .heap =
        {
            .bins = {[0 ... TSL_BINS - 1] = {.head = &tsl_bin_end}},
            .store = &tsl_store_empty,
            .home = &tsl_home_empty,
            .tag = (uint32_t)TSL_HEAP_NOBODY << TSL_CODE_BITS,
            .number = TSL_HEAP_NOBODY,
        },
    .unit_count = UINT32_MAX,
    .slot_count = TSL_HOME_SLOTS,
    .outlived = &tsl_home_empty.heap,
};

uint32_t tsl_last_home;  // [remote]

TSL_TLS struct tsl_heap *tsl_heap_current = &tsl_home_empty.heap;

void tsl_part_grow(struct tsl_part *part) {
  if (part->is_grown) return;
  struct tsl_home_store *own = part->heap.home->own;
  part->is_grown = true;
  part->grown_next = own->grown;
  tsl_store_release(&own->grown, part->heap.number);  // pairs: grown-parts
}
