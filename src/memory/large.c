#include "memory/large.h"

#include "base/atomic.h"
#include "base/bits.h"
#include "memory/detention.h"
#include "memory/mirror.h"
#include "memory/purge.h"
#include "memory/record.h"
#include "memory/segment.h"
#include "os/os.h"

// Moving pages pays from here on; each move may split a mapping, of which the system allows 65,530.
#define MOVE_BYTES ((size_t)1 << 21)
enum { MOST_MOVES = 1000 };

static uint32_t moves;  // [remote]

static size_t units_for(size_t bytes) {
  return bytes == 0 ? 1 : tsl_divide_up(bytes, TSL_UNIT_BYTES);
}

static void count_large(int objects, ptrdiff_t bytes) {
  tsl_add_relaxed(&tsl_counts.large_objects, (uint64_t)objects);
  tsl_add_relaxed(&tsl_counts.large_bytes, (uint64_t)bytes);
}

void *tsl_large_alloc(size_t bytes, size_t alignment, uint32_t entry, bool *clean) {
  size_t units = units_for(bytes);
  size_t alignment_units = alignment <= TSL_UNIT_BYTES ? 1 : alignment >> TSL_UNIT_LOG2;
  tsl_unit first = tsl_units_take(units, alignment_units, clean);
  if (first == 0) return NULL;
  struct tsl_span *span = tsl_span_at(first);
  span->units = (uint32_t)units;
  span->bytes = units << TSL_UNIT_LOG2;
  span->sample = 0;
  tsl_store_relaxed(&span->epoch, 0);
  tsl_store_relaxed(tsl_map_entry(first), entry);
  count_large(1, (ptrdiff_t)span->bytes);
  return (void *)tsl_unit_address(first);
}

size_t tsl_large_bytes(const void *block) { return tsl_span_at(tsl_unit_of(block))->bytes; }

// From here on the units may be anybody's as soon as they are given away.
static void large_forget(size_t unit) {
  tsl_store_relaxed(tsl_map_entry(unit), 0);
  count_large(-1, -(ptrdiff_t)tsl_span_at(unit)->bytes);
}

static void units_end(size_t unit, size_t units) {
  tsl_units_give((tsl_unit)unit, units);
  tsl_purge_tick();
}

// A block whose contents nobody can have seen, or that lie elsewhere now.
static void large_end(void *block) {
  size_t unit = tsl_unit_of(block);
  large_forget(unit);
  units_end(unit, tsl_span_at(unit)->units);
}

void tsl_large_free(void *block) {
  size_t unit = tsl_unit_of(block), units = tsl_span_at(unit)->units;
  large_forget(unit);
  if (tsl_detention_take((tsl_unit)unit, units)) return;
  if (TSL_SECURE) tsl_os_purge(block, units << TSL_UNIT_LOG2);
  units_end(unit, units);
}

bool tsl_large_resize(void *block, size_t bytes) {
  size_t unit = tsl_unit_of(block), wanted = units_for(bytes);
  struct tsl_span *span = tsl_span_at(unit);
  bool clean;
  if (wanted > span->units) {
    if (!tsl_units_take_at((tsl_unit)(unit + span->units), wanted - span->units, &clean))
      return false;
  } else if (wanted < span->units) {
    tsl_units_give((tsl_unit)(unit + wanted), span->units - wanted);
  }
  count_large(0, (ptrdiff_t)(wanted << TSL_UNIT_LOG2) - (ptrdiff_t)span->bytes);
  span->units = (uint32_t)wanted;
  span->bytes = wanted << TSL_UNIT_LOG2;
  return true;
}

void *tsl_large_move(void *block, size_t bytes) {
  size_t unit = tsl_unit_of(block), old_bytes = tsl_large_bytes(block);
  bool clean;
  if (old_bytes < MOVE_BYTES || bytes <= old_bytes || tsl_load_relaxed(&moves) >= MOST_MOVES)
    return NULL;
  void *moved = tsl_large_alloc(bytes, 1, tsl_load_relaxed(tsl_map_entry(unit)), &clean);
  if (moved == NULL) return NULL;
  enum tsl_os_moved result = tsl_os_move(block, moved, old_bytes);
  if (result == TSL_OS_NOT_MOVED) large_end(moved);
  if (result == TSL_OS_PLACE_LOST) {
    tsl_store_relaxed(tsl_map_entry(tsl_unit_of(moved)), 0);
    count_large(-1, -(ptrdiff_t)tsl_large_bytes(moved));
  }
  if (result != TSL_OS_MOVED) return NULL;
  tsl_add_relaxed(&moves, 1);
  large_end(block);
  return moved;
}
