// cells: the cells of a heap, and frees in them. A freed block is not handed out again, unless it
// was cut last; the cell goes back once all of its blocks are free.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heap/loose.h"
#include "state/heap.h"

// Takes a cell of the class, on no list yet, and charges the epoch for it. 0 when memory is out, or
// when a limit refuses it: then `refused` is set. A limit's callback may have run, and have
// allocated in this heap. Owner only.
TSL_HIDDEN tsl_cell_number tsl_cells_take(struct tsl_heap *heap, unsigned class);

// Puts a cell on the heap's list as its newest; takes one off; takes one off, and gives it back.
// Owner only.
TSL_HIDDEN void tsl_cells_add(struct tsl_heap *heap, tsl_cell_number number);
TSL_HIDDEN void tsl_cells_unlist(struct tsl_heap *heap, tsl_cell_number number);
TSL_HIDDEN void tsl_cells_drop(struct tsl_heap *heap, tsl_cell_number number);

// What others than its heap's thread freed in a cell counts no longer as loose (loose.h). Before
// the cell is sealed, or goes back. Who owns its heap, or acts for the owner.
TSL_HIDDEN void tsl_cells_collect(tsl_cell_number number);

// Reports a heap's cells after each 256 KiB; up to 16 KiB of frees come late. Its thread may stay
// in the scope for ever. Owner only.
TSL_HIDDEN void tsl_cells_tell(struct tsl_heap *heap);

// Frees a block in a cell that is not the current heap's newest. Any thread.
TSL_HIDDEN void tsl_cells_free_older(struct tsl_heap *current, tsl_cell_number number, void *block);

// Frees a block in a sealed cell, other than that of a sample. It needs no frame. Any thread.
TSL_HIDDEN void tsl_cells_free_sealed(tsl_cell_number number, void *block);

// Frees a block that is not marked as any other: one that was kept. Reports a free of what is no
// live block. Any thread.
TSL_HIDDEN void tsl_cells_free_odd(void *block);

// Keeps a live block of a declared epoch (kept.h). Any thread.
TSL_HIDDEN void tsl_cells_keep(const void *block);

// Whether `byte`, of the block's granule, is of a live block that was not kept.
TSL_ALWAYS_INLINE bool tsl_cells_is_plain(unsigned byte, const void *block) {
  bool misaligned = !tsl_granule_begins_at(block);
  return byte - 1 < TSL_CLASSES && !misaligned;
}

// Marks a block free in a cell of the calling thread's heap, which no other thread can seal now.
// Returns its granule's byte before; 0 when no live block begins there, or the block was kept.
TSL_ALWAYS_INLINE unsigned tsl_cells_mark(
    uint8_t *granule,  // NOLINT(readability-non-const-parameter)
    const void *block) {
  unsigned byte = tsl_load_relaxed(granule);
  if (tsl_unlikely(!tsl_cells_is_plain(byte, block))) return 0;
  tsl_store_relaxed(granule, (uint8_t)(byte | TSL_CELL_FREED));
  return byte;
}

// Whether a block lies in the heap's newest cell.
TSL_ALWAYS_INLINE bool tsl_cells_are_newest(const struct tsl_heap *owner, const void *block) {
  return (uintptr_t)block - owner->cell_start < owner->cell_end - owner->cell_start;
}

enum {
  TSL_CELL_MOST_BACK = 1 << 13,  // bytes behind the furthest cut that may be cut again at most: the
                                 // helper may give what lies farther back (thin.h)
  TSL_CELL_MOST_RECUT = 1 << 13  // granules of one cell that are cut again at most, 128 KiB: so a
                                 // thread that frees each block at once comes to the cell's end,
                                 // and to a slow path, all the same
};

// Frees the block that was cut last. The next one is cut where it began, within these bounds, and
// while no samples are taken: otherwise it is freed as any other. Its owner.
TSL_HIDDEN void tsl_cells_free_last(struct tsl_heap *owner, void *block, unsigned byte);

TSL_ALWAYS_INLINE void tsl_cells_mark_newest(struct tsl_heap *owner, const void *block,
                                             unsigned byte) {
  tsl_store_relaxed(tsl_granule_at((uintptr_t)block), (uint8_t)(byte | TSL_CELL_FREED));
  owner->cell_freed += tsl_cell_shares[byte];
}

// Frees a block of the newest cell, whose address is aligned, as every one is that the map knows
// (tsl_fast_free). Its owner.
TSL_ALWAYS_INLINE void tsl_cells_free_newest(struct tsl_heap *owner, void *block) {
  unsigned byte = tsl_load_relaxed(tsl_granule_at((uintptr_t)block));
  tsl_assert(tsl_granule_begins_at(block));
  if (tsl_unlikely(byte - 1 >= TSL_CLASSES)) return tsl_cells_free_odd(block);
  uintptr_t end = (uintptr_t)block + tsl_cell_shares_bytes(tsl_cell_shares[byte]);
  if (end == owner->cell_next) return tsl_cells_free_last(owner, block, byte);
  tsl_cells_mark_newest(owner, block, byte);
}

// Makes the block that the heap cut last one of a larger class, where it lies. False when it is
// another block, or one that was kept, and when there is no room before the cell's end. Owner only.
TSL_HIDDEN bool tsl_cells_stretch(struct tsl_heap *heap, const void *block, unsigned class);

// Gives back one in which no block is left. Its owner.
TSL_HIDDEN void tsl_cells_drop_freed(struct tsl_heap *heap, tsl_cell_number number);

// Tells of what was freed in older cells. Owner only.
TSL_HIDDEN void tsl_cells_tell_piece(struct tsl_heap *heap);

// Frees a block in an older cell of the calling thread's. It needs no frame.
TSL_ALWAYS_INLINE void tsl_cells_free_own(struct tsl_heap *owner, tsl_cell_number number,
                                          void *block) {
  struct tsl_cell *cell = tsl_cell_at(number);
  unsigned byte = tsl_cells_mark(tsl_granule_at((uintptr_t)block), block);
  if (tsl_unlikely(byte == 0)) return tsl_cells_free_odd(block);
  owner->freed_objects++;
  owner->freed_granules += tsl_cell_shares_granules(tsl_cell_shares[byte]);
  tsl_store_relaxed(&cell->freed, cell->freed + 1);
  if (tsl_unlikely(cell->freed == cell->blocks)) return tsl_cells_drop_freed(owner, number);
  if (tsl_unlikely(tsl_loose_has_piece(owner))) tsl_cells_tell_piece(owner);
}

// The class of which a cell is a block.
TSL_ALWAYS_INLINE unsigned tsl_cells_class(tsl_cell_number number) {
  return tsl_entry_class(tsl_load_relaxed(tsl_map_entry(number / TSL_UNIT_PAGES)));
}

// The class of a live block in a cell; TSL_BINS when no live block begins there.
TSL_HIDDEN unsigned tsl_cells_block_class(const void *block);

// Takes a cell for blocks that are sampled, and lists it behind the newest one; a few that are
// empty go back first. 0 as of tsl_cells_take. Owner only, in a change.
TSL_HIDDEN tsl_cell_number tsl_cells_take_apart(struct tsl_heap *heap, unsigned class);

// Hands out a block there, which lies behind all others of the cell. Owner only, in a change.
TSL_HIDDEN void tsl_cells_hand_out(struct tsl_heap *heap, tsl_cell_number number, uintptr_t block,
                                   unsigned class);

// The samples of blocks in the cell end whose granules' bytes are `least` or more: 1 for all,
// TSL_CELL_FREED for those that were freed, or that an end has not spared. Before these count, and
// before the cell is made inaccessible. Any thread.
TSL_HIDDEN void tsl_cells_end_samples(tsl_cell_number number, unsigned least);

// The cell that a block lies in.
TSL_HIDDEN tsl_cell_number tsl_cells_of(const void *block);

// Looks at up to `most` of a home's cells, and gives those back whose blocks others freed.
// Owner only.
enum { TSL_CELLS_FEW = 4 };
TSL_HIDDEN void tsl_cells_look(struct tsl_home *home, uint32_t most);

// Gives back a sealed cell whose last block was freed, and drains its epoch by one. Any thread.
TSL_HIDDEN void tsl_cells_drained(tsl_cell_number number);

// The list leads from the newest to the oldest and back, and its counts are true. The owner,
// outside of changes.
TSL_HIDDEN bool tsl_cells_valid(const struct tsl_heap *heap);

// Gives back a cell that has no blocks any more. Any thread.
TSL_HIDDEN void tsl_cells_give(tsl_cell_number number);
