#include "slab/cell.h"

#include <string.h>

#include "base/bits.h"
#include "memory/kept.h"
#include "memory/purge.h"
#include "os/os.h"

#define SHARE(bytes) (1 | (uint64_t)((bytes) >> TSL_GRANULE_LOG2) << 32)
const uint64_t tsl_cell_shares[TSL_CLASSES + 1] = {
    0,
#define TINY(least, bytes) SHARE(bytes),
#define MEDIUM(bytes, units) SHARE(bytes),
#include "slab/sizeclass.def"
};
#undef TINY
#undef MEDIUM

void tsl_cell_open(tsl_cell_number number, uint32_t heap, uint32_t epoch) {
  tsl_store_relaxed(tsl_cell_remote(number), TSL_CELL_BIAS);
  struct tsl_cell *cell = tsl_cell_at(number);
  tsl_store_relaxed(&cell->blocks, 0);
  cell->granules = 0;
  cell->thinned = 0;
  tsl_store_relaxed(&cell->sample, 0);
  cell->newer = 0;
  tsl_store_relaxed(&cell->older, 0);
  tsl_store_relaxed(&cell->freed, 0);
  tsl_store_relaxed(&cell->heap, heap);
  tsl_store_relaxed(&cell->epoch, epoch);
}

void tsl_cell_clear(tsl_cell_number number) {
  struct tsl_cell *cell = tsl_cell_at(number);
  memset(tsl_granule_at(tsl_cell_address(number)), 0, cell->granules);
  tsl_store_relaxed(&cell->blocks, 0);
  tsl_store_relaxed(&cell->freed, 0);
  cell->granules = 0;
}

void tsl_cell_close(tsl_cell_number number) {
  tsl_cell_clear(number);
  tsl_cell_open(number, 0, 0);
}

// CE2, CE3.
uint32_t tsl_cell_seal(tsl_cell_number number) {
  struct tsl_cell *cell = tsl_cell_at(number);
  uint32_t kept = cell->blocks - cell->freed;
  tsl_store_release(&cell->heap, 0);  // pairs: cell-sealed
  uint32_t change = 0 - TSL_CELL_BIAS - kept;
  uint32_t before = tsl_add_acq_rel(tsl_cell_remote(number), change);  // pairs: cell-remote
  return 0 - (before + change);
}

uint32_t tsl_cell_out(tsl_cell_number number) {
  const struct tsl_cell *cell = tsl_cell_at(number);
  uint32_t remote = tsl_load_acquire(tsl_cell_remote(number));  // pairs: cell-remote
  if (tsl_load_relaxed(&cell->heap) == 0) return 0 - remote;
  return cell->blocks - tsl_load_relaxed(&cell->freed) - (remote - TSL_CELL_BIAS);
}

// `remote` of a sealed cell is 0 - the blocks out. Otherwise it is TSL_CELL_BIAS + the remote
// frees, or 0.
static bool is_sealed(uint32_t remote) { return 0 - remote - 1 < TSL_CELL_BIAS / 2; }

bool tsl_cell_hold(tsl_cell_number number) {
  uint32_t *remote = tsl_cell_remote(number), before = tsl_load_relaxed(remote);
  while (is_sealed(before)) {
    if (tsl_cas_acquire(remote, &before, before - 1)) return true;  // pairs: cell-remote
  }
  return false;
}

uint32_t tsl_cell_sealed_out(tsl_cell_number number) {
  uint32_t remote = tsl_load_relaxed(tsl_cell_remote(number));
  return is_sealed(remote) ? 0 - remote : 0;
}

// The bytes of eight granules, as one word.
typedef uint64_t __attribute__((may_alias)) granules_word;
enum { WORD_GRANULES = sizeof(granules_word) };

// The highest bit of each byte that is a live block's: not 0, and not TSL_CELL_FREED. No sum of two
// numbers below 128 reaches the next byte.
static uint64_t live_bytes_of(uint64_t word) {
  uint64_t low = tsl_each_byte(TSL_CELL_FREED - 1);
  return ((word & low) + low) & ~word & tsl_each_byte(TSL_CELL_FREED);
}

// The byte of the lowest bit of `bits`, without TSL_CELL_FREED.
static unsigned byte_at(uint64_t word, uint64_t bits) {
  return word >> (tsl_lowest_bit(bits) - 7) & (TSL_CELL_FREED - 1);
}

// Granules from one that has this byte to the next at which a block can begin.
static uint32_t step_behind(unsigned byte) {
  uint32_t own = tsl_cell_shares_granules(tsl_cell_shares[byte & (TSL_CELL_COUNTED - 1u)]);
  return own + (own == 0);
}

// A free at the same time marks its byte before or after this marks it, and so sees whether its
// block was counted.
uint32_t tsl_cell_count(tsl_cell_number number, uint32_t most, uint32_t *counts, uint32_t *kept) {
  uint32_t all = 0, granules = tsl_cell_at(number)->granules;
  uint8_t *granule = tsl_granule_at(tsl_cell_address(number));
  for (uint32_t i = 0, byte; all < most && i < granules; i += step_behind(byte)) {
    byte = tsl_load_relaxed(&granule[i]);
    if (byte == 0 || byte >= TSL_CELL_FREED) continue;
    byte = tsl_or_relaxed(&granule[i], (uint8_t)TSL_CELL_COUNTED);
    if (byte >= TSL_CELL_FREED) continue;
    ((byte & TSL_CELL_COUNTED) != 0 ? kept : counts)[tsl_granule_class(byte)]++;
    all++;
  }
  return all;
}

// The highest bit of each byte of a word whose bit in `bits` is set.
static uint64_t spread(unsigned bits) {
  uint64_t low = tsl_each_byte(TSL_CELL_FREED - 1);
  uint64_t each = bits * tsl_each_byte(1) & UINT64_C(0x8040201008040201);
  return (((each & low) + low) | each) & tsl_each_byte(TSL_CELL_FREED);
}

// A free of a kept block marks it, and takes its bit off later: where this finds neither bit nor
// mark, the block was not kept.
static uint32_t word_spare(uintptr_t address, uint32_t *counts) {
  granules_word *word = (granules_word *)(void *)tsl_granule_at(address);
  uint64_t live = live_bytes_of(tsl_load_relaxed(word));
  if (live == 0) return 0;
  uint64_t dead = live & ~spread(tsl_kept_take(address));
  uint64_t before = dead == 0 ? 0 : tsl_or_relaxed(word, dead);
  dead &= live_bytes_of(before);
  for (uint64_t left = dead; left != 0; left &= left - 1)
    counts[tsl_granule_class(byte_at(before, left))]++;
  return tsl_bit_count(dead);
}

uint32_t tsl_cell_spare(tsl_cell_number number, uint32_t granules, uint32_t rank,
                        uint32_t *counts) {
  const uintptr_t step = (uintptr_t)WORD_GRANULES << TSL_GRANULE_LOG2;
  uint32_t all = 0;
  uintptr_t start = tsl_cell_address(number);
  uintptr_t end = start + ((uintptr_t)granules << TSL_GRANULE_LOG2);
  if (rank != 0)
    tsl_store_release(&tsl_cell_at(number)->older, TSL_CELL_SPARED + rank);  // pairs: kept
  for (uintptr_t at = start; at < end; at += step) all += word_spare(at, counts);
  return all;
}

void tsl_cell_live(tsl_cell_number number, uint32_t *counts) {
  const uint8_t *granule = tsl_granule_at(tsl_cell_address(number));
  for (uint32_t i = 0; i < tsl_cell_at(number)->granules; i++) {
    unsigned class = tsl_granule_live(tsl_load_relaxed(&granule[i]));
    if (class < TSL_CLASSES) counts[class]++;
  }
}

uint64_t tsl_cell_classes(tsl_cell_number number, size_t bytes) {
  const uintptr_t step = (uintptr_t)WORD_GRANULES << TSL_GRANULE_LOG2;
  uint64_t classes = 0;
  for (uintptr_t at = tsl_cell_address(number), end = at + bytes; at < end; at += step) {
    uint64_t word = tsl_load_relaxed((granules_word *)(void *)tsl_granule_at(at));
    for (uint64_t left = live_bytes_of(word); left != 0; left &= left - 1)
      classes |= UINT64_C(1) << tsl_granule_class(byte_at(word, left)) % 64;
  }
  return classes;
}

// Bit i: some live block of the first granules lies in the page i places behind the cell's
// beginning.
static uint32_t live_pages(tsl_cell_number number, uint32_t granules) {
  const uint8_t *granule = tsl_granule_at(tsl_cell_address(number));
  uint32_t pages = 0;
  for (uint32_t i = 0; i < granules; i++) {
    unsigned class = tsl_granule_live(tsl_load_relaxed(&granule[i]));
    if (class >= TSL_CLASSES) continue;
    size_t first = (size_t)i << TSL_GRANULE_LOG2, last = first + tsl_sizeclasses[class].bytes - 1;
    unsigned from = (unsigned)(first >> TSL_CELL_PAGE_LOG2);
    unsigned to = (unsigned)(last >> TSL_CELL_PAGE_LOG2);
    pages |= (uint32_t)tsl_low_bits(to - from + 1) << from;
  }
  return pages;
}

static bool cell_page_is_dead(const void *context, size_t offset, size_t page_bytes) {
  const uint32_t *live = context;
  unsigned first = (unsigned)(offset >> TSL_CELL_PAGE_LOG2);
  return (*live >> first & tsl_low_bits((unsigned)(page_bytes >> TSL_CELL_PAGE_LOG2))) == 0;
}

static unsigned purge(tsl_cell_number number, uint32_t granules, size_t bytes) {
  uint32_t live = live_pages(number, granules);
  return tsl_purge_dead(tsl_cell_address(number), bytes, cell_page_is_dead, &live).calls;
}

unsigned tsl_cell_purge(tsl_cell_number number, size_t cell_bytes) {
  return purge(number, tsl_cell_at(number)->granules, cell_bytes);
}

static size_t page_bytes_of(uint32_t granules) {
  return tsl_round_down((size_t)granules << TSL_GRANULE_LOG2, tsl_os_page_bytes());
}

unsigned tsl_cell_purge_start(tsl_cell_number number, uint32_t granules) {
  size_t bytes = page_bytes_of(granules);
  return bytes == 0 ? 0 : purge(number, granules, bytes);
}

bool tsl_cell_start_is_dead(tsl_cell_number number, uint32_t granules) {
  unsigned pages = (unsigned)(page_bytes_of(granules) >> TSL_CELL_PAGE_LOG2);
  uint64_t live = live_pages(number, granules) & tsl_low_bits(pages);
  return pages != 0 && 2 * tsl_bit_count(live) <= pages;
}
