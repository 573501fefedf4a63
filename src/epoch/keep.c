#include "epoch/keep.h"

#include <errno.h>

#include "epoch/inspect.h"
#include "epoch/large_list.h"
#include "heap/cells.h"
#include "heap/slabs.h"
#include "memory/kept.h"
#include "state/epoch.h"

static const struct tsl_slab *kept_slab(const void *block) {
  return tsl_slab_position(tsl_class_around(block), block).slab;
}

static uint32_t kept_rank(const void *block) {
  unsigned code = tsl_entry_code(tsl_map_lookup(block));
  if (code == TSL_CODE_LARGE) return tsl_load_relaxed(&tsl_span_at(tsl_unit_of(block))->rank);
  if (tsl_code_is_cell(code)) return tsl_cell_rank(tsl_cells_of(block));
  return tsl_slab_rank(kept_slab(block));
}

static void kept_mark(uint32_t slot, const void *block) {
  unsigned code = tsl_entry_code(tsl_map_lookup(block));
  if (code == TSL_CODE_LARGE) return tsl_large_list_keep(slot, block);
  if (tsl_code_is_cell(code)) return tsl_cells_keep(block);
  tsl_slabs_keep(block);
}

// Deferred calls run before the objects end.
static bool keep_is_late(const struct tsl_epoch *epoch, uint64_t word) {
  return tsl_epoch_state(word) == TSL_EPOCH_RELEASED &&
         tsl_load_acquire(&epoch->settled) != 0;  // pairs: settled
}

// The epoch cannot retire: the block lives. It is known to keep blocks before a block is marked.
int tsl_keep_block(const void *block) {
  if (tsl_inspect_epoch_of(block) == TSLAB_NO_EPOCH) return EFAULT;
  uint32_t slot = tsl_inspect_slot_of(block);
  struct tsl_epoch *epoch = tsl_epoch_at(slot);
  uint64_t word = tsl_load_acquire(&epoch->word);  // pairs: epoch-word
  if (slot == 0 || tsl_epoch_is_shared(epoch)) return 0;
  if (keep_is_late(epoch, word) && kept_rank(block) == 0) return ECANCELED;
  if (!tsl_kept_begin()) return ENOMEM;
  tsl_store_relaxed(&epoch->keeps, (word >> TSL_EPOCH_STATE_BITS) + 1);  // KE2
  kept_mark(slot, block);
  return 0;
}

static bool kept_is_marked(uint32_t slot, const void *block) {
  if (slot == 0 || !tsl_epoch_keeps(slot)) return false;
  if (tsl_entry_code(tsl_map_lookup(block)) == TSL_CODE_LARGE)
    return tsl_load_relaxed(&tsl_span_at(tsl_unit_of(block))->kept) != 0;
  return tsl_kept_has(block);
}

// What an end spared belongs to an ancestor: in that it needs no mark to live as long.
void tsl_keep_instead(const void *block, const void *moved) {
  uint32_t slot = tsl_inspect_slot_of(block), to = tsl_inspect_slot_of(moved);
  bool was_spared = slot != 0 && tsl_epoch_keeps(slot) && kept_rank(block) != 0;
  if (kept_is_marked(slot, block) || (was_spared && slot == to)) tsl_keep_block(moved);
}
