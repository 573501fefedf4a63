#include "alloc/guarded.h"

#include "alloc/malloc.h"
#include "slab/canary.h"
#include "slab/slab.h"
#include "state/misuse.h"
#include "state/owner.h"

// Checks the canary of the block that the thread allocated last, which it has most probably written
// to. The block may have been freed: only the owner closes a home's slabs, so while the map names
// this home the memory can be read.
static void look_at_last(struct tsl_home *home) {
  const void *block = home->own->handed;
  uint32_t entry = block == NULL ? UINT32_MAX : tsl_map_lookup(block) ^ home->heap.tag;
  unsigned class = tsl_entry_class(entry);
  if (entry >= TSL_CODES || tsl_slab_position(class, block).index < 0) return;
  if (tsl_likely(!tsl_canary_is_damaged(block, class))) return;
  home->own->handed = NULL;
  tsl_misuse_overflow(block);
}

void *tsl_guard(void *block, unsigned class, size_t bytes) {
  if (!TSL_SECURE || block == NULL) return block;
  tsl_canary_set(block, class, bytes == 0 ? 1 : bytes);
  struct tsl_home *home = tsl_heap_current->home;
  if (home != &tsl_home_empty) home->own->handed = block;
  return block;
}

void *tsl_guarded_malloc(size_t bytes) {
  void *nothing = tsl_malloc_nothing(bytes, TSL_BLOCK_ALIGNMENT);
  if (nothing != NULL) return nothing;
  struct tsl_home *home = tsl_heap_current->home;
  if (home != &tsl_home_empty) look_at_last(home);
  if (bytes > TSL_CANARY_LIMIT) return tsl_malloc_large(bytes, 1, NULL);
  unsigned class = tsl_sizeclass_of(bytes + TSL_CANARY_BYTES);
  return tsl_guard(tsl_malloc_class(class), class, bytes);
}

// Whether the block is of another thread's home. That thread's look_at_last may be reading the
// canary, so only it may change the canary in place: for any other thread the block moves.
static bool is_anothers(const void *block) {
  uint32_t owner = tsl_entry_owner(tsl_map_lookup(block));
  return owner != tsl_heap_current->home->heap.number && tsl_owner_is_home(owner);
}

// A block keeps its place as in other builds; whatever the program wrote behind it is told.
bool tsl_guarded_resize(void *block, size_t bytes) {
  unsigned class = tsl_class_around(block);
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
  unsigned class = tsl_entry_class(entry);
  return entry != 0 && class < TSL_CLASSES && tsl_slab_position(class, block).index >= 0 &&
         tsl_canary_has(block);
}
