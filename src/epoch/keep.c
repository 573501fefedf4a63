#include "epoch/keep.h"

#include <errno.h>

#include "epoch/inspect.h"
#include "epoch/large_list.h"
#include "epoch/spare.h"
#include "heap/cells.h"
#include "heap/slabs.h"
#include "memory/kept.h"
#include "state/epoch.h"
#include "state/history.h"
#include "tell/epochs.h"

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

// Whether the part of a thread that has not left yet has it: that part ends later.
static bool kept_is_unsealed(const void *block) {
  uint32_t entry = tsl_map_lookup(block);
  if (tsl_entry_code(entry) == TSL_CODE_LARGE) return false;
  if (!tsl_code_is_cell(tsl_entry_code(entry))) return tsl_entry_owner(entry) != TSL_HEAP_SEALED;
  return tsl_load_acquire(&tsl_cell_at(tsl_cells_of(block))->heap) != 0;  // pairs: cell-sealed
}

// Deferred calls run before the objects end.
static bool keep_is_late(const struct tsl_epoch *epoch, uint64_t word, const void *block) {
  return tsl_epoch_state(word) == TSL_EPOCH_RELEASED &&
         tsl_load_acquire(&epoch->settled) != 0 &&  // pairs: settled
         !kept_is_unsealed(block) && kept_rank(block) == 0;
}

// The epoch cannot retire: the block lives. It is known to keep blocks before a block is marked.
// From its own end on the block is the parent's: the memory of the parent would spare it (PL3), so
// the next epochs of the label are no guests.
int tsl_keep_block(const void *block) {
  if (tsl_inspect_epoch_of(block) == TSLAB_NO_EPOCH) return EFAULT;
  uint32_t slot = tsl_inspect_slot_of(block);
  struct tsl_epoch *epoch = tsl_epoch_at(slot);
  uint64_t word = tsl_load_acquire(&epoch->word);  // pairs: epoch-word
  if (slot == 0 || tsl_epoch_is_shared(epoch)) return 0;
  if (keep_is_late(epoch, word, block)) return ECANCELED;
  if (!tsl_kept_begin()) return ENOMEM;
  if (epoch->parent != 0 && tsl_history_released(epoch->label)) tsl_report_history(epoch->label);
  tsl_store_release(&epoch->keeps, (word >> TSL_EPOCH_STATE_BITS) + 1);  // KE2; pairs: keeps
  kept_mark(slot, block);
  return 0;
}

static bool kept_is_marked(uint32_t slot, const void *block) {
  if (slot == 0 || !tsl_epoch_keeps(slot)) return false;
  if (tsl_entry_code(tsl_map_lookup(block)) == TSL_CODE_LARGE)
    return tsl_load_relaxed(&tsl_span_at(tsl_unit_of(block))->kept) != 0;
  return tsl_kept_has(block);
}

void tsl_keep_instead(const void *block, const void *moved) {
  if (kept_is_marked(tsl_inspect_slot_of(block), block)) tsl_keep_block(moved);
}

static bool slot_is_released(uint32_t slot) {
  return tsl_epoch_state(tsl_load_relaxed(&tsl_epoch_at(slot)->word)) == TSL_EPOCH_RELEASED;
}

// SP1. What is spared after the end of that ancestor, by a thread that was still inside, only a
// free ends.
uint32_t tsl_keep_account(const void *block) {
  uint32_t slot = tsl_inspect_slot_of(block);
  uint32_t rank = slot != 0 && tsl_epoch_keeps(slot) ? kept_rank(block) : 0;
  if (rank == 0) return slot;
  while (slot != 0 && tsl_spare_rank(slot) >= rank) slot = tsl_epoch_at(slot)->parent;
  return slot != 0 && slot_is_released(slot) ? 0 : slot;
}
