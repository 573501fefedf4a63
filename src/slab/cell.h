// cell: 4, 16 or 64 KiB in which a young epoch lays its small blocks back to back, all sizes mixed,
// in the order of allocation: an arena that still knows every block. Cells are blocks of three
// size classes of the home's; nothing of their bookkeeping lies in them.
//
// Each granule of 16 bytes has a byte: class + 1 where a live block begins, with TSL_CELL_FREED
// added once the block was freed, with TSL_CELL_COUNTED added where the block was kept (kept.h) or
// the seal found it live, 0 elsewhere. The thread that frees a block writes its byte; no two
// threads free the same block.
//
//  CE1  `freed` counts the frees by the heap's thread, `remote` all others, from TSL_CELL_BIAS on
//  CE2  sealing takes from `remote` the bias, and the blocks that the thread did not free. From
//       then on it is minus the number of blocks out: whoever brings it to zero, by a free or by
//       the seal, gives the cell back
//  CE3  heap is 0 once the cell is sealed: from then on every free is a remote one
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "memory/record.h"
#include "slab/sizeclass.h"

enum {
  TSL_CELL_PAGE_LOG2 = 12,  // the smallest cell
  TSL_UNIT_PAGES = 1 << (TSL_UNIT_LOG2 - TSL_CELL_PAGE_LOG2),
  TSL_CELL_FREED = 0x80,
  TSL_CELL_COUNTED = 0x40,
  TSL_CELL_BLOCK_LIMIT = 8192,  // larger blocks would waste the ends of cells
};
#define TSL_CELL_BIAS (UINT32_C(1) << 31)

// A cell is named by its first page, counted from the region's base. 0: none.
typedef uint32_t tsl_cell_number;

struct tsl_cell {
  // [owner] Those that the heap handed out; 0 while it cuts blocks off the cell. [lock:holds]
  // Once the cell is sealed: those that were out when its dead pages went back last (remains.c).
  // The owner changes with the seal: clang's analysis cannot follow that.
  _Alignas(32) uint32_t blocks;
  uint32_t freed;  // [owner, read by any] of these, by the heap's thread
  uint32_t heap;   // [owner, read by any] the heap whose cell it is; 0 when sealed or free
  uint32_t epoch;  // [owner, then who gives it back; read by any] slot of its epoch; 0 when free
  tsl_cell_number newer;  // [owner] neighbours on the heap's list
  tsl_cell_number older;  // [owner; once the cell is sealed, who ends its epoch] or its rank among
                          // what ends have spared (tsl_cell_spare)
  uint16_t granules;      // [owner] up to which blocks lie, or a mark of one that was cut back
                          // (mixed.c); 0 while the heap cuts blocks off it
  uint16_t thinned;  // [helper, cleared by owner] how far it was when the helper looked (thin.h)
  uint32_t sample;   // [owner, then who ends the sample] of its one block; 0: none;
                     // TSL_CELL_SAMPLES: see tsl_cell_sample_of
};

// Several sampled blocks lie in the cell.
#define TSL_CELL_SAMPLES UINT32_MAX

// Numbers that no cell has: `older` of cells that an end has spared.
#define TSL_CELL_SPARED UINT32_C(0xffffff00)

_Static_assert((int)TSL_CLASSES < (int)TSL_CELL_COUNTED, "a class and its marks fit a byte");

// The byte of the granule where a live block of the class begins.
TSL_ALWAYS_INLINE uint8_t tsl_granule_byte(unsigned class) { return (uint8_t)(class + 1); }

// The class of the block whose granule has this byte, live or freed; TSL_CLASSES or more: no block
// begins there.
TSL_ALWAYS_INLINE unsigned tsl_granule_class(unsigned byte) {
  return (byte & (TSL_CELL_COUNTED - 1u)) - 1u;
}
// The same for live blocks only.
TSL_ALWAYS_INLINE unsigned tsl_granule_live(unsigned byte) {
  return (byte & ~(unsigned)TSL_CELL_COUNTED) - 1u;
}

// Whether a block may begin there.
TSL_ALWAYS_INLINE bool tsl_granule_begins_at(const void *place) {
  return ((uintptr_t)place & ((1u << TSL_GRANULE_LOG2) - 1)) == 0;
}

// Two counts in one word: freed objects in the lower half, their granules in the upper. What a free
// of a block adds, by its granule's byte.
TSL_HIDDEN extern const uint64_t tsl_cell_shares[TSL_CLASSES + 1];
TSL_ALWAYS_INLINE uint32_t tsl_cell_shares_objects(uint64_t shares) { return (uint32_t)shares; }
TSL_ALWAYS_INLINE uint32_t tsl_cell_shares_granules(uint64_t shares) {
  return (uint32_t)(shares >> 32);
}
// In bytes, of one object.
TSL_ALWAYS_INLINE size_t tsl_cell_shares_bytes(uint64_t shares) {
  return shares >> (32 - TSL_GRANULE_LOG2);
}

// One a unit.
struct tsl_cells {
  struct tsl_cell cells[TSL_UNIT_PAGES];
  TSL_ON_LINE uint32_t remote[TSL_UNIT_PAGES];  // [remote]
} TSL_ON_LINE;

_Static_assert(sizeof(struct tsl_cell) == 32, "two cells a line");
_Static_assert(sizeof(struct tsl_cells) == TSL_CELLS_BYTES, "cells fit their place");

TSL_ALWAYS_INLINE struct tsl_cells *tsl_cells_at(size_t unit) {
  return (struct tsl_cells *)(tsl_region.cells + unit * TSL_CELLS_BYTES);
}
TSL_ALWAYS_INLINE struct tsl_cell *tsl_cell_at(tsl_cell_number number) {
  return &tsl_cells_at(number / TSL_UNIT_PAGES)->cells[number % TSL_UNIT_PAGES];
}
TSL_ALWAYS_INLINE uint32_t *tsl_cell_remote(tsl_cell_number number) {
  return &tsl_cells_at(number / TSL_UNIT_PAGES)->remote[number % TSL_UNIT_PAGES];
}
TSL_ALWAYS_INLINE uintptr_t tsl_cell_address(tsl_cell_number number) {
  return tsl_region.base + ((uintptr_t)number << TSL_CELL_PAGE_LOG2);
}
// The cell of `class` that an address lies in.
TSL_ALWAYS_INLINE tsl_cell_number tsl_cell_of(const void *address, unsigned class) {
  uintptr_t offset = (uintptr_t)address - tsl_region.base;
  return (tsl_cell_number)((offset & ~(uintptr_t)(tsl_sizeclasses[class].bytes - 1)) >>
                           TSL_CELL_PAGE_LOG2);
}

// Where the number of a block's sample stands: with the cell where the block is the only one, else
// in the granule before the block. 0: it was not sampled, or is freed.
static inline uint32_t *tsl_cell_sample_of(tsl_cell_number number, const void *block) {
  struct tsl_cell *cell = tsl_cell_at(number);
  uintptr_t before = (uintptr_t)block - ((uintptr_t)1 << TSL_GRANULE_LOG2);
  bool is_before = tsl_load_relaxed(&cell->sample) == TSL_CELL_SAMPLES;
  return is_before ? (uint32_t *)before : &cell->sample;
}

TSL_ALWAYS_INLINE bool tsl_is_cell(unsigned class) { return class >= TSL_CLASSES; }

// Makes a piece of memory a cell of the heap.
TSL_HIDDEN void tsl_cell_open(tsl_cell_number number, uint32_t heap, uint32_t epoch);

// Clears the bytes and the counts of a cell, up to `granules`.
TSL_HIDDEN void tsl_cell_clear(tsl_cell_number number);

// The same; afterwards the cell belongs to no heap, and its memory may be given back.
TSL_HIDDEN void tsl_cell_close(tsl_cell_number number);

// Seals the cell (CE2, CE3). Returns the blocks that are out; 0: the caller gives the cell back.
// The heap's owner, or the thread that acts for it; not while the heap still allocates in it.
TSL_HIDDEN uint32_t tsl_cell_seal(tsl_cell_number number);

// Blocks that are out of a cell at this moment; the heap does not allocate in it any more.
TSL_HIDDEN uint32_t tsl_cell_out(tsl_cell_number number);

// Marks the live blocks as counted, and adds their number to `counts`, by class, or to `kept` where
// they were marked already. `most`: so many are out at most; it looks for no more. Returns their
// number, which may be less than are out: a free by another thread marks the block first and counts
// last. The thread that seals the cell, before that.
TSL_HIDDEN uint32_t tsl_cell_count(tsl_cell_number number, uint32_t most, uint32_t *counts,
                                   uint32_t *kept);

// The rank that tsl_cell_spare gave a sealed cell; 0: none.
TSL_ALWAYS_INLINE uint32_t tsl_cell_rank(tsl_cell_number number) {
  uint32_t older = tsl_load_relaxed(&tsl_cell_at(number)->older);
  return older < TSL_CELL_SPARED ? 0 : older - TSL_CELL_SPARED;
}

// Ends the live blocks in the first `granules` that are not kept, adds their number to `counts`, by
// class, and returns it: the caller counts them as freed. Those that are kept are so no more, and
// the cell, which is on no list, gets a rank (spare.h). The thread that ends the epoch.
TSL_HIDDEN uint32_t tsl_cell_spare(tsl_cell_number number, uint32_t granules, uint32_t rank,
                                   uint32_t *counts);

// The live blocks of a sealed cell, added to `counts`, by class. A moment's value.
TSL_HIDDEN void tsl_cell_live(tsl_cell_number number, uint32_t *counts);

// The classes of the live blocks in the first `bytes` of any cell: a bit each. A moment's value.
TSL_HIDDEN uint64_t tsl_cell_classes(tsl_cell_number number, size_t bytes);

// Holds a sealed cell: counts one block more as out, so that the cell cannot go back before the
// caller has called tsl_cell_put_remote. False when the cell is not sealed or is empty. Any thread.
TSL_HIDDEN bool tsl_cell_hold(tsl_cell_number number);

// Blocks that are out of a sealed cell, holds among them; 0 for any other. A moment's value.
TSL_HIDDEN uint32_t tsl_cell_sealed_out(tsl_cell_number number);

// Gives back the pages of a cell in which no live block lies. Returns the number of system calls.
// The thread that holds the cell.
TSL_HIDDEN unsigned tsl_cell_purge(tsl_cell_number number, size_t cell_bytes);

// The same for whole pages of the first granules, of a cell in which its heap may still allocate
// behind them; and whether no block lives in half of these pages, as far as the caller sees. The
// helper, while it tends the home.
TSL_HIDDEN unsigned tsl_cell_purge_start(tsl_cell_number number, uint32_t granules);
TSL_HIDDEN bool tsl_cell_start_is_dead(tsl_cell_number number, uint32_t granules);

// CE1: counts a free by somebody who is not the owner. True when it was the last one of a sealed
// cell: the caller gives it back.
TSL_ALWAYS_INLINE bool tsl_cell_put_remote(tsl_cell_number number) {
  return tsl_add_acq_rel(tsl_cell_remote(number), 1) == UINT32_MAX;  // pairs: cell-remote
}
// The same for several.
static inline bool tsl_cell_put_several(tsl_cell_number number, uint32_t count) {
  return tsl_add_acq_rel(tsl_cell_remote(number), count) == 0 - count;  // pairs: cell-remote
}
