#include "epoch/inspect.h"

#include "base/lock.h"
#include "epoch/large_list.h"
#include "epoch/open.h"
#include "heap/cells.h"
#include "heap/extent.h"
#include "heap/hold.h"
#include "heap/remote.h"
#include "heap/rest.h"
#include "heap/total.h"
#include "memory/kept.h"
#include "slab/canary.h"
#include "slab/zero.h"
#include "state/bin.h"
#include "state/change.h"
#include "state/label.h"
#include "state/owner.h"

// One cell, slab or large block of an epoch.
struct piece {
  tsl_unit unit;
  uint32_t units;        // 0 in a cell
  tsl_cell_number cell;  // 0 when it is none
  unsigned code;         // of its map entry
  uint32_t slot;         // of its epoch
};

enum { EVERY_EPOCH = 0 };  // in place of a slot: all epochs but the default one

typedef int piece_visit(const struct piece *piece, void *context);

static size_t piece_bytes(const struct piece *piece) {
  if (piece->code == TSL_CODE_LARGE) return tsl_span_at(piece->unit)->bytes;
  const struct tsl_sizeclass *sizeclass = &tsl_sizeclasses[tsl_code_class(piece->code)];
  return piece->cell != 0 ? sizeclass->bytes : sizeclass->slab_bytes;
}

static uintptr_t piece_address(const struct piece *piece) {
  return piece->cell != 0 ? tsl_cell_address(piece->cell) : tsl_unit_address(piece->unit);
}

static bool is_of(uint32_t slot, uint32_t wanted) {
  return wanted == EVERY_EPOCH ? slot != 0 : slot == wanted;
}

static int visit_cells(tsl_unit unit, unsigned code, uint32_t slot, piece_visit *visit,
                       void *context) {
  int result = 0;
  for (uint32_t page = 0; page < TSL_UNIT_PAGES && result == 0; page++) {
    struct piece piece = {unit, 0, unit * TSL_UNIT_PAGES + page, code, 0};
    piece.slot = tsl_load_relaxed(&tsl_cell_at(piece.cell)->epoch);
    if (is_of(piece.slot, slot)) result = visit(&piece, context);
  }
  return result;
}

static uint32_t owner_units(size_t unit, unsigned code) {
  return code == TSL_CODE_LARGE ? tsl_span_at(unit)->units
                                : tsl_sizeclasses[tsl_code_class(code)].units;
}

// Where the pieces of one epoch lie, or those of all.
static struct tsl_extent walk_extent(uint32_t slot) {
  tsl_unit end = (tsl_unit)tsl_load_acquire(&tsl_region.units);  // pairs: region-grow
  struct tsl_extent all = {(tsl_unit)tsl_region.first_unit, end};
  return slot == EVERY_EPOCH ? all : tsl_extent_of(slot);
}

// Whether a slab is of no epoch, by the map and its heap: the slab's record would be a cache line
// more.
static bool is_of_none(uint32_t entry) {
  if (tsl_entry_code(entry) >= TSL_CODES) return false;
  uint32_t owner = tsl_entry_owner(entry);
  bool has_heap = owner < TSL_HEAP_NOBODY && tsl_heap_is_ready(tsl_heap_at(owner));
  return has_heap && tsl_owner_is_home(owner);
}

// Visits each cell, slab and large block of one epoch, or of all, until a visit returns other than
// 0. A slab that was opened after the walk passed its first unit is passed over: it begins at a
// multiple of its units.
static int visit_pieces(uint32_t slot, piece_visit *visit, void *context) {
  struct tsl_extent extent = walk_extent(slot);
  int result = 0;
  for (size_t unit = extent.first, next; unit < extent.end && result == 0; unit = next) {
    uint32_t entry = tsl_load_relaxed(tsl_map_entry(unit));
    unsigned code = tsl_entry_code(entry);
    next = unit + 1;
    if (entry == 0 || is_of_none(entry)) continue;
    if (tsl_code_is_cell(code)) {
      result = visit_cells((tsl_unit)unit, code, slot, visit, context);
      continue;
    }
    struct piece piece = {(tsl_unit)unit, owner_units(unit, code), 0, code, 0};
    size_t behind = code == TSL_CODE_LARGE ? 0 : unit & (piece.units - 1);
    if (piece.units > 1) next = unit - behind + piece.units;
    if (behind != 0) continue;
    piece.slot = tsl_span_at(unit)->epoch;
    if (is_of(piece.slot, slot)) result = visit(&piece, context);
  }
  return result;
}

struct block_visit {
  int (*visit)(void *, size_t, void *);
  void *context;
  bool usable;  // tells what the program may use of a block, not what it takes
};

static int visit_cell_blocks(const struct piece *piece, const struct block_visit *each) {
  uintptr_t start = piece_address(piece);
  size_t granules = piece_bytes(piece) >> TSL_GRANULE_LOG2;
  const uint8_t *granule = tsl_granule_at(start);
  int result = 0;
  for (size_t i = 0; i < granules && result == 0; i++) {
    unsigned class = tsl_granule_live(tsl_load_relaxed(&granule[i]));
    if (class >= TSL_CLASSES) continue;
    void *block = (void *)(start + (i << TSL_GRANULE_LOG2));
    result = each->visit(block, tsl_sizeclasses[class].bytes, each->context);
  }
  return result;
}

// Blocks that are neither free nor on their way there.
static uint64_t live_bits(const struct tsl_slab *slab, unsigned word) {
  unsigned capacity = tsl_sizeclasses[slab->class].capacity;
  return ~tsl_slab_free_word(slab, word) & tsl_low_bits(capacity - word * 64);
}

static int visit_slab_blocks(const struct piece *piece, const struct block_visit *each) {
  const struct tsl_slab *slab = tsl_slab_at(piece->unit);
  const struct tsl_sizeclass *sizeclass = &tsl_sizeclasses[slab->class];
  int result = 0;
  for (unsigned word = 0; word * 64 < sizeclass->capacity && result == 0; word++) {
    for (uint64_t live = live_bits(slab, word); live != 0 && result == 0; live &= live - 1) {
      size_t index = word * 64 + tsl_lowest_bit(live);
      void *block = (void *)(piece_address(piece) + index * sizeclass->bytes);
      size_t usable = tsl_canary_usable(block, slab->class);
      result = each->visit(block, each->usable ? usable : sizeclass->bytes, each->context);
    }
  }
  return result;
}

static bool all_are_sealed(const struct tsl_epoch *epoch) {
  return tsl_load_acquire(&epoch->settled) != 0 &&  // pairs: settled
         tsl_load_acquire(&epoch->unsealed) == 0;   // pairs: unsealed
}

// Whether the end of its epoch spares something there, or did (spare.h).
static bool is_spared(const struct piece *piece) {
  if (piece->code == TSL_CODE_LARGE) return tsl_large_is_spared(tsl_span_at(piece->unit));
  bool has_kept =
      tsl_epoch_keeps(piece->slot) && tsl_kept_any(piece_address(piece), piece_bytes(piece));
  if (piece->cell != 0) return has_kept || tsl_cell_rank(piece->cell) != 0;
  return has_kept || tsl_slab_rank(tsl_slab_at(piece->unit)) != 0;
}

// What lived there has ended, and the memory waits, inaccessible (poison.h).
static bool is_poisoned(const struct piece *piece) {
  return tsl_epoch_waits(piece->slot) && all_are_sealed(tsl_epoch_at(piece->slot)) &&
         !is_spared(piece);
}

static int visit_piece_blocks(const struct piece *piece, void *context) {
  const struct block_visit *each = context;
  if (is_poisoned(piece)) return 0;
  if (piece->cell != 0) return visit_cell_blocks(piece, each);
  if (piece->code != TSL_CODE_LARGE) return visit_slab_blocks(piece, each);
  return each->visit((void *)piece_address(piece), piece_bytes(piece), each->context);
}

typedef void part_visit(struct tsl_part *part, void *context);

static void visit_all_parts(uint32_t slot, part_visit *visit, void *context) {
  for (uint32_t number = tsl_load_relaxed(&tsl_region.last_heap); number != 0; number--) {
    struct tsl_heap *heap = tsl_heap_at(number);
    if (!tsl_heap_is_ready(heap) || tsl_heap_is_home(heap)) continue;
    struct tsl_part *part = tsl_part_of(heap);
    bool is_sealed = tsl_load_acquire(&part->sealing) != TSL_PART_UNSEALED;  // pairs: heap-sealing
    if (!is_sealed && is_of(tsl_load_relaxed(&heap->epoch), slot)) visit(part, context);
  }
}

// Calls `visit` for each part of an epoch that is not sealed: one that shares has none. The parts
// of an epoch that has ended are on no list: while threads are inside, all heaps are looked
// through.
static void visit_parts(uint32_t slot, part_visit *visit, void *context) {
  uint32_t number = tsl_load_acquire(&tsl_epoch_at(slot)->heaps);  // pairs: epoch-heaps
  if (tsl_epoch_place(slot) != slot) return;
  if (number == TSL_EPOCH_ENDED) {
    if (!all_are_sealed(tsl_epoch_at(slot))) visit_all_parts(slot, visit, context);
    return;
  }
  for (; number != 0; number = tsl_part_at(number)->epoch_next) visit(tsl_part_at(number), context);
}

static int visit_part_pieces(const struct tsl_heap *heap, piece_visit *visit, void *context) {
  int result = 0;
  for (tsl_cell_number cell = heap->cells, older; cell != 0 && result == 0; cell = older) {
    older = tsl_cell_at(cell)->older;
    tsl_unit unit = cell / TSL_UNIT_PAGES;
    unsigned code = tsl_entry_code(tsl_load_relaxed(tsl_map_entry(unit)));
    result = visit(&(struct piece){unit, 0, cell, code, heap->epoch}, context);
  }
  for (tsl_unit unit = heap->slabs, next; unit != 0 && result == 0; unit = next) {
    next = tsl_span_at(unit)->next;
    unsigned code = tsl_entry_code(tsl_load_relaxed(tsl_map_entry(unit)));
    result = visit(&(struct piece){unit, owner_units(unit, code), 0, code, heap->epoch}, context);
  }
  return result;
}

// Visits each cell, slab and large block of an open epoch that nobody uses meanwhile, until a visit
// returns other than 0. A visit may give back what it visits, and nothing else of the epoch.
static int visit_own_pieces(uint32_t slot, piece_visit *visit, void *context) TSL_NOT_ANALYSED {
  uint32_t number = tsl_load_acquire(&tsl_epoch_at(slot)->heaps);  // pairs: epoch-heaps
  int result = 0;
  for (; number != 0 && result == 0; number = tsl_part_at(number)->epoch_next)
    result = visit_part_pieces(tsl_heap_at(number), visit, context);
  for (tsl_unit unit = tsl_epoch_at(slot)->large, next; unit != 0 && result == 0; unit = next) {
    next = tsl_span_at(unit)->next;
    struct piece piece = {unit, tsl_span_at(unit)->units, 0, TSL_CODE_LARGE, slot};
    result = visit(&piece, context);
  }
  return result;
}

// Puts a part's hot blocks, which look live, back in their slabs. No other thread is in the epoch
// meanwhile; one that is in none may fork, so the part is marked as torn.
static void part_lay_down(struct tsl_part *part, void *unused) {
  struct tsl_heap *heap = &part->heap;
  (void)unused;
  if (!tsl_heap_has_store(heap)) return;
  tsl_change_shut(part);
  tsl_owner_act_for(heap->home);
  tsl_store_relaxed(&heap->torn, TSL_HEAP_TORN);
  tsl_compiler_fence();  // pairs: heap-torn
  tsl_heap_lay_down(heap);
  tsl_compiler_fence();  // pairs: heap-torn
  tsl_store_relaxed(&heap->torn, TSL_HEAP_WHOLE);
  tsl_owner_act_for(NULL);
  tsl_change_reopen(part);
}

int tsl_inspect_blocks(uint32_t slot, int (*visit)(void *, size_t, void *), void *context) {
  struct block_visit each = {visit, context, true};
  struct tsl_change change = tsl_change_begin(tsl_heap_current->home);
  visit_parts(slot, part_lay_down, NULL);
  tsl_change_end(change);
  bool is_open = tsl_load_relaxed(&tsl_epoch_at(slot)->heaps) != TSL_EPOCH_ENDED;
  bool may_have_spared = tsl_epoch_keeps(slot);  // which are on no list
  if (is_open && !may_have_spared) return visit_own_pieces(slot, visit_piece_blocks, &each);
  return visit_pieces(slot, visit_piece_blocks, &each);
}

// Once nobody holds it, an epoch is over but for its word. A fork may have left it so for ever.
static bool is_held(tslab_epoch id) {
  const struct tsl_epoch *epoch = tsl_epoch_find(id);
  return epoch != NULL && tsl_load_relaxed(&epoch->undrained) != 0;
}

int tsl_inspect_epochs(int (*visit)(tslab_epoch, void *), void *context) {
  uint32_t last = tsl_load_relaxed(&tsl_region.last_epoch);
  int result = 0;
  for (uint32_t slot = 1; slot <= last && result == 0; slot++) {
    uint64_t word = tsl_load_acquire(&tsl_epoch_at(slot)->word);  // pairs: epoch-word
    tslab_epoch id = tsl_epoch_id(slot, word);
    if (is_held(id)) result = visit(id, context);
  }
  return result;
}

static int advise_piece(const struct piece *piece, void *context) {
  const enum tsl_os_use *use = context;
  return tsl_os_advise_use((void *)piece_address(piece), piece_bytes(piece), *use) ? 0 : 1;
}

bool tsl_inspect_advise(uint32_t slot, int use) {
  enum tsl_os_use advice = (enum tsl_os_use)use;
  return visit_pieces(slot, advise_piece, &advice) == 0;
}

static int count_block(void *block, size_t bytes, void *context) {
  struct tsl_survivors *live = context;
  (void)block;
  live->objects++;
  live->bytes += bytes;
  return 0;
}

static int count_piece(const struct piece *piece, void *context) {
  struct block_visit each = {count_block, context, false};
  return visit_piece_blocks(piece, &each);
}

// The hot free blocks of a heap's bins look live to count_piece.
static void subtract_hot(const struct tsl_heap *heap, struct tsl_survivors *live) {
  for (unsigned class = 0; class < TSL_CLASSES && tsl_heap_has_store(heap); class += 1) {
    size_t hot = tsl_heap_hot_blocks(heap, class);
    live->objects -= hot;
    live->bytes -= hot * tsl_sizeclasses[class].bytes;
  }
}

typedef void waiting_visit(uint32_t slot, const struct tsl_survivors *blocks, void *context);

static void visit_waiting_of(const struct tsl_home *home, waiting_visit *visit, void *context) {
  for (unsigned class = 0; class < TSL_GATHERS; class += 1) {
    uint32_t part, objects = tsl_remote_waiting_for(home, class, &part);
    if (objects == 0) continue;
    size_t bytes = (size_t)objects * tsl_sizeclasses[class].bytes;
    struct tsl_survivors blocks = {.objects = objects, .bytes = bytes};
    visit(tsl_load_relaxed(&tsl_heap_at(part)->epoch), &blocks, context);
  }
}

// Blocks of shared epochs that wait in the gathers of other threads look live, too (remote.h).
static void visit_waiting(waiting_visit *visit, void *context) {
  for (uint32_t number = 0; (number = tsl_home_behind(number)) != 0;) {
    const struct tsl_home *home = tsl_home_at(number);
    if (tsl_heap_is_ready(&home->heap)) visit_waiting_of(home, visit, context);
  }
}

struct heap_count {
  tslab_epoch_stats *stats;
  struct tsl_survivors *live;
  struct tsl_total *total;
};

static void count_part(struct tsl_part *part, void *context) {
  const struct heap_count *count = context;
  count->stats->threads++;
  count->stats->scopes += tsl_load_relaxed(&part->heap.depth);
  subtract_hot(&part->heap, count->live);
  struct tsl_total more = tsl_total_of_part(&part->heap);
  count->total->objects += more.objects;
  count->total->bytes += more.bytes;
}

// The shared epoch of a label never ends; a host is held by its guest.
static tslab_epoch place_id(tslab_epoch id) {
  uint32_t slot = tsl_epoch_slot(id), place = tsl_epoch_place(slot);
  return place == slot ? id : tsl_epoch_id(place, tsl_load_relaxed(&tsl_epoch_at(place)->word));
}

// One that is being reset is open for everybody else.
static bool is_open(uint64_t word) {
  enum tsl_epoch_state state = tsl_epoch_state(word);
  return state == TSL_EPOCH_OPEN || state == TSL_EPOCH_RESETTING;
}

static enum tslab_state public_state(const struct tsl_epoch *epoch, uint64_t word) {
  if (tsl_epoch_is_shared(epoch)) return TSLAB_SHARED;
  return is_open(word) ? TSLAB_OPEN : (enum tslab_state)tsl_epoch_state(word);
}

// Its last object may have been freed meanwhile. The program is not told here (over.h): whoever
// inspects may hold locks.
static void record_let_go(tslab_epoch id) {
  tsl_busy_begin();
  if (id != TSLAB_DEFAULT) tsl_epoch_drain(tsl_epoch_slot(id), 1);
  tsl_busy_end();
}

// Keeps the epoch from retiring; false when it is over. The default epoch never retires.
static bool record_hold(tslab_epoch id) {
  uint32_t slot = tsl_epoch_slot(id);
  if (tsl_epoch_find(id) == NULL || (slot != 0 && !tsl_epoch_hold(slot))) return false;
  if (slot == 0 || tsl_epoch_find(id) != NULL) return true;
  record_let_go(id);
  return false;
}

// Of an epoch that is held. A charge that is under way has not noted its peak yet.
static void record_read(tslab_epoch id, tslab_epoch_stats *stats) {
  const struct tsl_epoch *epoch = tsl_epoch_at(tsl_epoch_slot(id));
  uint64_t now = tsl_os_now_ms(), word = tsl_load_relaxed(&epoch->word);
  uint64_t parent_word = tsl_load_relaxed(&tsl_epoch_at(epoch->parent)->word);
  size_t held = tsl_load_relaxed(&epoch->held_bytes), peak = tsl_load_relaxed(&epoch->peak_bytes);
  *stats = (tslab_epoch_stats){
      .size = stats->size,
      .epoch = id,
      .parent = epoch->parent == 0 ? TSLAB_DEFAULT : tsl_epoch_id(epoch->parent, parent_word),
      .label = tsl_label_text(epoch->label),
      .state = public_state(epoch, word),
      .children = tsl_load_relaxed(&epoch->children),
      .held_bytes = held,
      .age_ms = tsl_epoch_slot(id) == 0 ? 0 : now - epoch->opened_ms,
      .closed_ms = is_open(word) ? 0 : now - epoch->closed_ms,
      .late = tsl_load_relaxed(&epoch->late),
      .place = place_id(id),
      .peak_bytes = peak > held ? peak : held,
  };
}

bool tsl_inspect_record(tslab_epoch id, tslab_epoch_stats *stats) {
  if (!record_hold(id)) return false;
  record_read(id, stats);
  record_let_go(id);
  return true;
}

struct shared_count {
  uint32_t slot;
  struct tsl_survivors *live;
};

static void subtract_waiting(uint32_t slot, const struct tsl_survivors *blocks, void *context) {
  const struct shared_count *shared = context;
  if (slot != shared->slot) return;
  shared->live->objects -= blocks->objects;
  shared->live->bytes -= blocks->bytes;
}

// Blocks may be handed out, freed and waiting while their slab was counted before.
static size_t not_below_none(size_t difference) {
  return difference > PTRDIFF_MAX ? 0 : difference;
}

static void stats_count(uint32_t slot, tslab_epoch_stats *stats) {
  struct tsl_survivors live = {0};
  struct tsl_total total = tsl_total_of(slot);
  visit_pieces(slot, count_piece, &live);
  visit_parts(slot, count_part, &(struct heap_count){stats, &live, &total});
  if (tsl_epoch_is_shared(tsl_epoch_at(slot)))
    visit_waiting(subtract_waiting, &(struct shared_count){slot, &live});
  stats->live_objects = not_below_none(live.objects);
  stats->live_bytes = not_below_none(live.bytes);
  stats->allocated_objects = total.objects;
  stats->allocated_bytes = total.bytes;
}

bool tsl_inspect_epoch(tslab_epoch id, tslab_epoch_stats *stats) {
  if (!record_hold(id)) return false;
  record_read(id, stats);
  if (id != TSLAB_DEFAULT && stats->place == id) stats_count(tsl_epoch_slot(id), stats);
  record_let_go(id);
  return true;
}

struct adding {
  void (*add)(uint32_t slot, const struct tsl_survivors *live, void *context);
  void *context;
};

static int add_piece(const struct piece *piece, void *context) {
  const struct adding *adding = context;
  struct tsl_survivors live = {0};
  count_piece(piece, &live);
  adding->add(piece->slot, &live, adding->context);
  return 0;
}

static void add_part(struct tsl_part *part, void *context) {
  const struct adding *adding = context;
  struct tsl_survivors live = {0};
  subtract_hot(&part->heap, &live);
  adding->add(part->heap.epoch, &live, adding->context);
}

static void add_waiting(uint32_t slot, const struct tsl_survivors *blocks, void *context) {
  const struct adding *adding = context;
  struct tsl_survivors less = {.objects = 0 - blocks->objects, .bytes = 0 - blocks->bytes};
  adding->add(slot, &less, adding->context);
}

void tsl_inspect_live(void (*add)(uint32_t slot, const struct tsl_survivors *live, void *context),
                      void *context) {
  struct adding adding = {add, context};
  visit_pieces(EVERY_EPOCH, add_piece, &adding);
  visit_all_parts(EVERY_EPOCH, add_part, &adding);
  visit_waiting(add_waiting, &adding);
}

static tslab_epoch id_of(uint32_t slot) {
  return slot == 0 ? TSLAB_DEFAULT
                   : tsl_epoch_id(slot, tsl_load_relaxed(&tsl_epoch_at(slot)->word));
}

uint32_t tsl_inspect_slot_of(const void *block) {
  uint32_t entry = tsl_map_lookup(block);
  unsigned code = tsl_entry_code(entry);
  size_t unit = tsl_unit_of(block);
  if (entry == 0) return 0;
  if (code == TSL_CODE_LARGE) return tsl_span_at(unit)->epoch;
  if (tsl_code_is_cell(code)) return tsl_cell_at(tsl_cell_of(block, tsl_code_class(code)))->epoch;
  return tsl_span_at(tsl_slab_unit(tsl_slab_position(tsl_code_class(code), block).slab))->epoch;
}

// Whether a block that is not free begins there.
static bool is_live(const void *block, uint32_t entry) {
  unsigned code = tsl_entry_code(entry);
  if (entry == 0) return tsl_zero_has(block);
  if (code == TSL_CODE_LARGE) return ((uintptr_t)block & (TSL_UNIT_BYTES - 1)) == 0;
  if (tsl_code_is_cell(code)) return tsl_cells_block_class(block) != TSL_BINS;
  struct tsl_position position = tsl_slab_position(tsl_code_class(code), block);
  if (position.index < 0) return false;
  unsigned index = (unsigned)position.index;
  return (live_bits(position.slab, index / 64) >> index % 64 & 1) != 0;
}

tslab_epoch tsl_inspect_epoch_of(const void *block) {
  if (!is_live(block, tsl_map_lookup(block))) return TSLAB_NO_EPOCH;
  return id_of(tsl_inspect_slot_of(block));
}

static void inspect_cell(const void *block, unsigned class, tslab_block_info *info) {
  uintptr_t start = tsl_cell_address(tsl_cell_of(block, class));
  size_t bytes = tsl_sizeclasses[class].bytes;
  const uint8_t *granule = tsl_granule_at(start);
  for (size_t i = 0; i < bytes >> TSL_GRANULE_LOG2; i++) {
    unsigned at = tsl_load_relaxed(&granule[i]);
    info->capacity += at != 0;
    info->live += at != 0 && at < TSL_CELL_FREED;
  }
  info->shared_bytes = bytes;
  info->usable_bytes = tsl_sizeclasses[tsl_cells_block_class(block)].bytes;
}

static void inspect_slab(const struct tsl_slab *slab, tslab_block_info *info) {
  const struct tsl_sizeclass *sizeclass = &tsl_sizeclasses[slab->class];
  for (unsigned word = 0; word * 64 < sizeclass->capacity; word++)
    info->live += tsl_bit_count(live_bits(slab, word));
  info->capacity = sizeclass->capacity;
  info->shared_bytes = sizeclass->slab_bytes;
}

static void inspect_large(const void *block, tslab_block_info *info) {
  info->shared_bytes = tsl_span_at(tsl_unit_of(block))->bytes;
  info->usable_bytes = info->shared_bytes;
  info->live = 1;
  info->capacity = 1;
}

bool tsl_inspect_block(const void *block, tslab_block_info *info) {
  uint32_t entry = tsl_map_lookup(block);
  unsigned code = tsl_entry_code(entry);
  *info = (tslab_block_info){.size = info->size};
  if (!is_live(block, entry)) return false;
  info->epoch = id_of(tsl_inspect_slot_of(block));
  if (entry == 0) {
    info->live = 1;
    info->capacity = 1;
  } else if (code == TSL_CODE_LARGE) {
    inspect_large(block, info);
  } else if (tsl_code_is_cell(code)) {
    inspect_cell(block, tsl_code_class(code), info);
  } else {
    inspect_slab(tsl_slab_position(tsl_code_class(code), block).slab, info);
    info->usable_bytes = tsl_canary_usable(block, tsl_code_class(code));
  }
  return true;
}
