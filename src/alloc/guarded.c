#include "alloc/guarded.h"

#include "alloc/malloc.h"
#include "epoch/misuse.h"
#include "slab/canary.h"
#include "slab/slab.h"

// The block that the thread allocated last is the one that it most probably writes to. A home
// heap's slabs are closed by their owner alone: while the map names one, its memory is there.
static void look_at_last(struct tsl_heap *home) {
  const void *block = home->store->handed;
  uint32_t entry = block == NULL ? UINT32_MAX : tsl_map_lookup(block) ^ home->tag;
  entry &= ~(uint32_t)TSL_CODE_VISITED;
  unsigned class = entry / 2;
  if (entry >= TSL_CODES || tsl_slab_place(class, block).index < 0) return;
  if (tsl_likely(!tsl_canary_is_damaged(block, class))) return;
  home->store->handed = NULL;
  tsl_misuse_overflow(block);
}

void *tsl_guard(void *block, unsigned class, size_t bytes) {
  if (!TSL_SECURE || block == NULL) return block;
  tsl_canary_set(block, class, bytes == 0 ? 1 : bytes);
  struct tsl_heap *home = tsl_heap_current->home;
  if (home != &tsl_heap_empty) home->store->handed = block;
  return block;
}

void *tsl_guarded_malloc(size_t bytes) {
  void *nothing = tsl_malloc_nothing(bytes, TSL_BLOCK_ALIGNMENT);
  if (nothing != NULL) return nothing;
  struct tsl_heap *home = tsl_heap_current->home;
  if (home != &tsl_heap_empty) look_at_last(home);
  if (bytes > TSL_CANARY_LIMIT) return tsl_malloc_large(bytes, 1, NULL);
  unsigned class = tsl_sizeclass_of(bytes + TSL_CANARY_BYTES);
  return tsl_guard(tsl_malloc_class(class), class, bytes);
}

// Only a thread itself changes a canary that its look_at_last may be reading: for others the blocks
// of its home heap move.
static bool is_anothers(const void *block) {
  uint32_t owner = tsl_map_lookup(block) >> TSL_CODE_BITS;
  return owner != tsl_heap_current->home->number && tsl_heap_is_home(owner);
}

// A block keeps its place as in other builds; whatever the program wrote behind it is told.
bool tsl_guarded_resize(void *block, size_t bytes) {
  unsigned class = tsl_entry_code(tsl_map_lookup(block)) / 2;
  if (is_anothers(block)) return false;
  size_t room = tsl_sizeclasses[class].bytes;
  if (bytes > room - TSL_CANARY_BYTES) return false;
  if (bytes < room / 2 && tsl_sizeclass_of(bytes + TSL_CANARY_BYTES) != class) return false;
  if (!tsl_canary_is_whole(block, class)) tsl_misuse_overflow(block);
  tsl_canary_move(block, class, bytes);
  return true;
}

bool tsl_guarded_has(const void *block) {
  uint32_t entry = TSL_SECURE ? tsl_map_lookup(block) : 0;
  unsigned class = tsl_entry_code(entry) / 2;
  return entry != 0 && class < TSL_CLASSES && tsl_slab_place(class, block).index >= 0 &&
         tsl_canary_has(block);
}
