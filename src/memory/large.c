#include "memory/large.h"

#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/tools.h"
#include "memory/detention.h"
#include "memory/huge.h"
#include "memory/mirror.h"
#include "memory/purge.h"
#include "memory/record.h"
#include "memory/units.h"
#include "os/os.h"

// Moving pages pays from here on.
#define MOVE_BYTES ((size_t)512 << 10)

// Below this, a copy to memory that is there takes less time than the page faults after a move.
#define COPY_BYTES ((size_t)TSL_HUGE_LEAST_UNITS << TSL_UNIT_LOG2)

// Each move may leave the block in one mapping more. A piece costs four at most of the 65,530 that
// a process may have (decision 015). A block of many pieces is copied, and has none then. Blocks
// below LARGER_BYTES leave half of the pieces to others.
enum { MOST_PIECES = 2048, MOST_PIECES_OF_BLOCK = 64 };
#define LARGER_BYTES ((size_t)2 << 20)

// A block that moves because it grows by an eighth at most gets a quarter of its units as room
// behind it: growth by small steps then moves it so seldom that even copying takes time in
// proportion to its final size.
enum { STEP_SHARE_LOG2 = 3, ROOM_SHARE_LOG2 = 2 };

// The secure build gives each block a unit more, whose first page is a guard.
enum { GUARD_UNITS = TSL_SECURE ? 1 : 0 };

static uint32_t pieces;  // [remote] of all blocks

static size_t units_for(size_t bytes) {
  return bytes == 0 ? 1 : tsl_divide_up(bytes, TSL_UNIT_BYTES);
}

static void count_large(int objects, ptrdiff_t bytes) {
  tsl_add_relaxed(&tsl_counts.large_objects, (uint64_t)objects);
  tsl_add_relaxed(&tsl_counts.large_bytes, (uint64_t)bytes);
}

static bool guard_set(struct tsl_span *span, size_t unit, size_t offset_units, bool guarded) {
  void *page = (void *)tsl_unit_address(unit + offset_units);
  if (!tsl_os_guard(page, tsl_os_page_bytes(), guarded)) return false;
  span->guard = guarded ? (uint32_t)offset_units : 0;
  return true;
}

// Puts the guard behind the block's bytes. Without one an overflow is not seen, no more.
static void guard_close(struct tsl_span *span, size_t unit) {
  if (TSL_SECURE) (void)guard_set(span, unit, span->bytes >> TSL_UNIT_LOG2, true);
}

// False when the system leaves the guard where it is.
static bool guard_open(struct tsl_span *span, size_t unit) {
  return !TSL_SECURE || span->guard == 0 || guard_set(span, unit, span->guard, false);
}

// Gives units of a span back that has so many pieces.
static void span_give(uint32_t span_pieces, size_t first, size_t units) {
  if (span_pieces == 0)
    tsl_units_give((tsl_unit)first, units);
  else
    tsl_units_give_moved((tsl_unit)first, units);
  tsl_purge_for_limit(units);
}

// What is free is zero in the secure build.
static void units_wipe(size_t first, size_t units) {
  if (!TSL_SECURE) return;
  void *start = (void *)tsl_unit_address(first);
  size_t bytes = units << TSL_UNIT_LOG2;
  if (!tsl_os_purge(start, bytes)) memset(start, 0, bytes);
}

// Before a place is given back that nobody uses. False: its guard stays, and it is kept.
static bool span_open(size_t unit) {
  struct tsl_span *span = tsl_span_at(unit);
  bool opened = guard_open(span, unit);
  if (!opened) tsl_detention_keep((tsl_unit)unit, span->units);
  return opened;
}

static void span_end(size_t unit) {
  const struct tsl_span *span = tsl_span_at(unit);
  if (span_open(unit)) span_give(span->pieces, unit, span->units);  // pairs: span-units
}

// The same where the pages have moved to another block; what lies behind them is as it was.
static void span_end_empty(size_t unit) {
  const struct tsl_span *span = tsl_span_at(unit);
  size_t units = span->units, empty = span->bytes >> TSL_UNIT_LOG2;
  if (!span_open(unit)) return;
  if (span->pieces != 0 || tsl_units_count_moved((tsl_unit)unit, units) != 0) {
    if (!tsl_units_renew((tsl_unit)unit, units)) return;
    empty = units;
  }
  tsl_units_give_clean((tsl_unit)unit, empty);
  if (empty != units) span_give(0, unit + empty, units - empty);
}

void *tsl_large_alloc(size_t bytes, size_t alignment, uint32_t entry, bool *clean) {
  size_t units = units_for(bytes);
  size_t alignment_units = alignment <= TSL_UNIT_BYTES ? 1 : alignment >> TSL_UNIT_LOG2;
  if (alignment_units > TSL_SEGMENT_UNITS) tsl_detention_end();  // such a place is dear
  if (TSL_SECURE) tsl_detention_retry();
  tsl_unit first = tsl_units_take(units + GUARD_UNITS, alignment_units, clean);
  if (first == 0) return NULL;
  tsl_purge_for_limit(units);
  struct tsl_span *span = tsl_span_at(first);
  span->units = (uint32_t)(units + GUARD_UNITS);
  span->bytes = units << TSL_UNIT_LOG2;
  span->sample = 0;
  span->pieces = 0;
  span->guard = 0;
  guard_close(span, first);
  tsl_store_relaxed(&span->epoch, 0);
  tsl_tools_begin(tsl_unit_address(first), span->bytes);
  tsl_store_relaxed(tsl_map_entry(first), entry);
  count_large(1, (ptrdiff_t)span->bytes);
  return (void *)tsl_unit_address(first);
}

size_t tsl_large_bytes(const void *block) { return tsl_span_at(tsl_unit_of(block))->bytes; }

// Takes the block out of the map and the counts. After this its units may be given away.
static void large_forget(size_t unit) {
  const struct tsl_span *span = tsl_span_at(unit);
  tsl_store_relaxed(tsl_map_entry(unit), 0);
  tsl_tools_end(tsl_unit_address(unit), span->bytes);
  count_large(-1, -(ptrdiff_t)span->bytes);
  tsl_sub_relaxed(&pieces, span->pieces);
}

// Ends a block without detention: its contents have moved to another block.
static void large_end(void *block) {
  size_t unit = tsl_unit_of(block);
  large_forget(unit);
  span_end_empty(unit);
  tsl_purge_tick();
}

// A place that consists of pieces is not detained: its memory would be gone for the next block.
void tsl_large_free(void *block) {
  size_t unit = tsl_unit_of(block);
  const struct tsl_span *span = tsl_span_at(unit);
  large_forget(unit);
  if (span->pieces == 0 && tsl_detention_take((tsl_unit)unit, span->units)) return;
  units_wipe(unit, span->bytes >> TSL_UNIT_LOG2);
  span_end(unit);
  tsl_purge_tick();
}

// Takes the units behind the block, or gives back those beyond `wanted`. At no moment does `units`
// count units that are not the block's: a fork may come between any two stores.
static bool span_set_units(struct tsl_span *span, size_t unit, size_t wanted) {
  size_t before = span->units;
  bool clean;
  if (wanted > before && !tsl_units_take_at((tsl_unit)(unit + before), wanted - before, &clean))
    return false;
  tsl_store_relaxed(&span->units, (uint32_t)wanted);
  tsl_compiler_fence();  // pairs: span-units
  tsl_huge_suit((tsl_unit)unit, wanted);
  if (wanted > before) {
    tsl_tools_begin(tsl_unit_address(unit + before), (wanted - before) << TSL_UNIT_LOG2);
    tsl_purge_for_limit(wanted - before);
  }
  if (wanted >= before) return true;
  units_wipe(unit + wanted - GUARD_UNITS, before - wanted);
  span_give(span->pieces, unit + wanted, before - wanted);
  return true;
}

// Resizes the block in place; its guard page has been opened.
static bool span_resize(struct tsl_span *span, size_t unit, size_t bytes) {
  size_t wanted = units_for(bytes) + GUARD_UNITS;
  size_t before = span->bytes, after = (wanted - GUARD_UNITS) << TSL_UNIT_LOG2;
  bool fits = after >= before && wanted <= span->units;
  if (after < before) span->bytes = after;
  tsl_compiler_fence();  // pairs: span-units
  if (!fits && !span_set_units(span, unit, wanted)) return false;
  count_large(0, (ptrdiff_t)after - (ptrdiff_t)before);
  span->bytes = after;
  return true;
}

bool tsl_large_resize(void *block, size_t bytes) {
  size_t unit = tsl_unit_of(block);
  struct tsl_span *span = tsl_span_at(unit);
  if (!guard_open(span, unit)) return false;
  bool resized = span_resize(span, unit, bytes);
  guard_close(span, unit);
  return resized;
}

// The bytes of room for a block that grows from `before` to `bytes`.
static size_t room_for(size_t before, size_t bytes) {
  if (bytes - before > before >> STEP_SHARE_LOG2) return 0;
  return bytes >> ROOM_SHARE_LOG2 & ~(TSL_UNIT_BYTES - 1);
}

// Allocates a block with room behind its bytes: units into which it can grow.
static void *alloc_with_room(size_t bytes, size_t room, uint32_t entry, bool *clean) {
  size_t wanted = units_for(bytes) << TSL_UNIT_LOG2;
  char *block = tsl_large_alloc(wanted + room, 1, entry, clean);
  if (block == NULL) return tsl_large_alloc(bytes, 1, entry, clean);
  struct tsl_span *span = tsl_span_at(tsl_unit_of(block));
  if (room == 0 || !guard_open(span, tsl_unit_of(block))) return block;
  tsl_huge_part(tsl_unit_of(block), wanted >> TSL_UNIT_LOG2);
  span->bytes = wanted;
  guard_close(span, tsl_unit_of(block));
  count_large(0, -(ptrdiff_t)room);
  return block;
}

// The pieces of a block after its pages moved: a unit that is marked as moved may be one, too.
static size_t pieces_after_move(const struct tsl_span *span, size_t unit) {
  return span->pieces + tsl_units_count_moved((tsl_unit)unit, span->units) + 1;
}

// `clean`: the new place reads as zero. What is free in the secure build has no memory either way.
static bool may_move_pages(const struct tsl_span *span, size_t pieces_then, bool clean) {
  if (span->bytes < MOVE_BYTES || pieces_then > MOST_PIECES_OF_BLOCK) return false;
  if (!TSL_SECURE && !clean && span->bytes < COPY_BYTES) return false;
  uint32_t most = span->bytes < LARGER_BYTES ? MOST_PIECES / 2 : MOST_PIECES;
  return tsl_load_relaxed(&pieces) < most;
}

// Leaves no page in the place to which pages will move, nor in its room, and no unit marked. False
// when the system refuses; `*lost`: the place must not be used then.
static bool place_empty(const struct tsl_span *to, void *place, bool *lost) {
  tsl_unit first = (tsl_unit)tsl_unit_of(place);
  size_t units = TSL_SECURE ? to->bytes >> TSL_UNIT_LOG2 : to->units;  // a guard lies between
  *lost = false;
  if (tsl_units_count_moved(first, units) == 0) return tsl_os_purge(place, units << TSL_UNIT_LOG2);
  bool renewed = tsl_units_renew(first, units);
  *lost = !renewed;
  return renewed;
}

// Counts the new place as moved even when the system refused: it may be a mapping of its own
// nevertheless. What moves has one advice, since not every Linux moves several mappings at once,
// and brings it along.
static enum tsl_os_moved pages_move(const struct tsl_span *from, struct tsl_span *to, void *block,
                                    void *moved, size_t pieces_then) {
  to->pieces = (uint32_t)pieces_then;
  tsl_add_relaxed(&pieces, to->pieces);
  tsl_huge_end(tsl_unit_of(block), from->units);
  enum tsl_os_moved result = tsl_os_move(block, moved, from->bytes);
  size_t first = tsl_unit_of(moved);
  if (result != TSL_OS_PLACE_LOST) tsl_huge_renew(first, first + to->units);
  return result;
}

// Moves the pages of a block to another one where that pays.
static enum tsl_os_moved contents_move(void *block, void *moved, bool clean) {
  size_t unit = tsl_unit_of(block);
  const struct tsl_span *from = tsl_span_at(unit);
  struct tsl_span *to = tsl_span_at(tsl_unit_of(moved));
  bool lost = false;
  size_t pieces_then = pieces_after_move(from, unit);
  if (!may_move_pages(from, pieces_then, clean)) return TSL_OS_NOT_MOVED;
  if (!clean && !place_empty(to, moved, &lost)) return lost ? TSL_OS_PLACE_LOST : TSL_OS_NOT_MOVED;
  return pages_move(from, to, block, moved, pieces_then);
}

void *tsl_large_move(void *block, size_t bytes) {
  size_t unit = tsl_unit_of(block);
  const struct tsl_span *span = tsl_span_at(unit);
  if (bytes <= span->bytes) return NULL;
  bool clean;
  uint32_t entry = tsl_load_relaxed(tsl_map_entry(unit));
  void *moved = alloc_with_room(bytes, room_for(span->bytes, bytes), entry, &clean);
  if (moved == NULL) return NULL;
  enum tsl_os_moved result = contents_move(block, moved, clean);
  if (result == TSL_OS_PLACE_LOST) {
    large_forget(tsl_unit_of(moved));  // the place is the system's now
    return NULL;
  }
  if (result == TSL_OS_MOVED) {
    large_end(block);
  } else {
    memcpy(moved, block, span->bytes);
    tsl_large_free(block);
  }
  return moved;
}
