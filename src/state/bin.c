#include "state/bin.h"

#include "state/epoch.h"
#include "state/misuse.h"
#include "state/owner.h"
#include "state/quarantine.h"

enum {
  YOUNG_PART = 4,          // a home's bin begins with this part of its usual length,
  YOUNG_BLOCKS = 32,       // and at least so many blocks
  PASSED_BYTES = 1 << 20,  // once so much has met a full bin in a row,
  PASSED_PART = 4,         // this part of what follows sends a block of the bin back
  LITTLE_PART = 4          // of the bin: a burst that is longer by about this or less may fit
};

// Programs free many small blocks in a row; large ones cost much memory while they are kept.
#define CLAMP(n, least, most) ((n) < (least) ? (least) : (n) > (most) ? (most) : (n))
#define TINY(least, bytes) CLAMP(65536 / (bytes), 64, 1024),
#define MEDIUM(bytes, units) CLAMP(262144 / (bytes), 8, 64),
static const uint16_t usual_bins[TSL_BINS] = {
#include "slab/sizeclass.def"
    [TSL_CELL_4K] = 16, [TSL_CELL_16K] = 16, [TSL_CELL_64K] = 4};
#undef TINY
#undef MEDIUM
#undef CLAMP

// B4
unsigned tsl_bin_usual(unsigned class) { return TSL_SECURE ? 0 : usual_bins[class]; }

// Nothing is told while the thread takes the bin's blocks and then those of the stock, which are of
// one word, nor while it fills the bin and some more frees meet it full.
static size_t untold_beside_bin(unsigned class) {
  size_t word = tsl_at_most(tsl_sizeclasses[class].capacity, 64);
  return tsl_at_least(word, tsl_tally_most_untold[class]);
}

unsigned tsl_bin_longest(unsigned class) {
  unsigned usual = tsl_bin_usual(class);
  if (tsl_is_cell(class)) return usual;
  size_t blocks = TSL_TALLY_BEHIND_BYTES / tsl_sizeclasses[class].bytes;
  return (unsigned)tsl_at_most(2 * usual, blocks - untold_beside_bin(class));
}

// Only homes begin with less: parts live too short to learn that much; cells are few.
struct tsl_bin_limit tsl_bin_limit_new(const struct tsl_heap *heap, unsigned class) {
  size_t usual = tsl_bin_usual(class);
  size_t young = tsl_at_most(tsl_at_least(usual / YOUNG_PART, YOUNG_BLOCKS), usual);
  bool learns = tsl_heap_is_home(heap) && !tsl_is_cell(class);
  uint16_t most = (uint16_t)(learns ? young : usual);
  return (struct tsl_bin_limit){.now = most, .most = most};
}

unsigned tsl_bin_limit(const struct tsl_heap *heap, unsigned class) {
  return tsl_load_relaxed(&heap->store->limits[class].now);
}

struct tsl_bin tsl_bin_new(unsigned class, uint32_t until) {
  return (struct tsl_bin){&tsl_bin_end, until - 1, (int32_t)tsl_bin_usual(class)};
}

// A reader in another thread may see numbers of two moments.
uint32_t tsl_bin_length(const struct tsl_heap *heap, unsigned class) {
  int32_t limit = (int32_t)tsl_bin_limit(heap, class);
  if (!tsl_heap_has_store(heap)) return 0;
  int32_t length = limit - tsl_heap_room(heap, class);
  return length < 0 ? 0 : length > limit ? (uint32_t)limit : (uint32_t)length;
}

size_t tsl_heap_hot_blocks(const struct tsl_heap *heap, unsigned class) {
  uint32_t length = tsl_bin_length(heap, class);
  return length + tsl_stock_blocks(&heap->store->stocks[class]) +
         tsl_quarantine_blocks(heap, class);
}

// Allocations have just taken half of the bin: a longer one is counted anew less often, and may
// hold twice as many blocks. Returns the room.
static int32_t bin_lengthen(struct tsl_heap *heap, unsigned class, int32_t room) {
  struct tsl_bin_limit *limit = &heap->store->limits[class];
  unsigned most = limit->most;
  if (limit->now != most || 2 * (unsigned)room < most || most >= tsl_bin_usual(class)) return room;
  unsigned more = (unsigned)tsl_at_most(most, tsl_bin_usual(class) - most);
  limit->most = (uint16_t)(most + more);
  tsl_store_relaxed(&limit->now, limit->most);
  return room + (int32_t)more;
}

// Counts the room anew: the fast path counts frees alone.
static int32_t bin_count_room(struct tsl_heap *heap, unsigned class) {
  int32_t room = tsl_heap_room(heap, class);
  if (room <= 0) return room;
  tsl_store_relaxed(&heap->store->seen[class], heap->bins[class].until);
  return bin_lengthen(heap, class, room);
}

bool tsl_bin_push(struct tsl_heap *heap, unsigned class, void *block) {
  tsl_assert(tsl_owner_is_me(heap));
  struct tsl_bin *bin = &heap->bins[class];
  struct tsl_free_block *freed = block;
  int32_t room = bin->room > 0 ? bin->room : bin_count_room(heap, class);
  if (room <= 0) return false;
  tsl_store_relaxed(&bin->room, room - 1);
  freed->link = (uintptr_t)block ^ (uintptr_t)bin->head;
  tsl_store_relaxed(&freed->mark, (uintptr_t)heap);
  tsl_compiler_fence();  // pairs: bin-head
  bin->head = block;
  return true;
}

static struct tsl_free_block *next_of(const struct tsl_free_block *block) {
  return (struct tsl_free_block *)(block->link ^ (uintptr_t)block);
}

// Whether an address may be a block of the class, of whomever: it can be read.
static bool is_block_of(const void *address, unsigned class) {
  bool is_aligned = (uintptr_t)address % TSL_BLOCK_ALIGNMENT == 0;
  return is_aligned && tsl_entry_code(tsl_map_lookup(address)) == tsl_class_code(class);
}

static bool is_followed(const struct tsl_free_block *block, unsigned class) {
  const struct tsl_free_block *next = next_of(block);
  return next == &tsl_bin_end || (next != block && is_block_of(next, class));
}

static void bin_clear(struct tsl_heap *heap, unsigned class) {
  heap->bins[class].head = &tsl_bin_end;
  bool has_store = tsl_heap_has_store(heap);
  unsigned limit = has_store ? tsl_bin_limit(heap, class) : tsl_bin_usual(class);
  heap->bins[class].room = (int32_t)limit;
  if (has_store) heap->store->seen[class] = heap->bins[class].until;
}

static bool block_is_whole(const struct tsl_heap *heap, unsigned class,
                           const struct tsl_free_block *block) {
  return block->mark == (uintptr_t)heap && is_followed(block, class);
}

// Where only the head's mark is damaged, only the head is dropped.
static void head_give_up(struct tsl_heap *heap, unsigned class) {
  struct tsl_bin *bin = &heap->bins[class];
  const struct tsl_free_block *block = bin->head, *next = next_of(block);
  bool is_linked = is_followed(block, class);
  if (is_linked && (next == &tsl_bin_end || block_is_whole(heap, class, next))) {
    bin->head = next_of(block);
    bin->room++;
  } else {
    bin_clear(heap, class);
  }
  tsl_misuse_written(block);
}

// Bounded by the limit: a damaged bin that has more blocks is a circle.
void tsl_bin_check(struct tsl_heap *heap, unsigned class) {
  tsl_assert(tsl_owner_is_me(heap));
  struct tsl_bin *bin = &heap->bins[class];
  for (unsigned left = tsl_bin_longest(class); bin->head != &tsl_bin_end; left--) {
    if (block_is_whole(heap, class, bin->head)) return;
    if (left == 0) return bin_clear(heap, class);
    head_give_up(heap, class);
  }
}

void *tsl_bin_pop(struct tsl_heap *heap, unsigned class) {
  tsl_assert(tsl_owner_is_me(heap));
  struct tsl_bin *bin = &heap->bins[class];
  tsl_bin_check(heap, class);
  struct tsl_free_block *block = bin->head;
  if (block == &tsl_bin_end) return NULL;
  block->mark = 0;
  bin->head = next_of(block);
  bin->room++;
  return block;
}

// A block of the bin; NULL when it has no more than its last one. `*is_due`: the counters are.
void *tsl_bin_take(struct tsl_heap *heap, unsigned class, bool *is_due) {
  tsl_assert(tsl_owner_is_me(heap));
  struct tsl_bin *bin = &heap->bins[class];
  void *block = tsl_bin_ends(heap, bin) ? NULL : tsl_bin_pop(heap, class);
  if (block == NULL) return NULL;
  bin->room--;
  *is_due = --bin->until == UINT32_MAX;
  return block;
}

// A bin that serves the next allocations of a program costs it less than one that is emptied first.
unsigned tsl_bin_passed(struct tsl_heap *heap, unsigned class, uint32_t frees) {
  tsl_assert(tsl_owner_is_me(heap));
  struct tsl_bin_limit *limit = &heap->store->limits[class];
  uint32_t ahead = tsl_bin_ahead(&heap->bins[class]);
  uint32_t allocations = (uint32_t)heap->store->allocations[class] - ahead;
  uint32_t before = limit->told == allocations ? limit->passed : 0, passed = before + frees;
  limit->told = allocations;
  limit->passed = passed;
  size_t bytes = (size_t)passed * tsl_sizeclasses[class].bytes;
  if (bytes <= PASSED_BYTES || tsl_is_cell(class)) return 0;
  return (unsigned)tsl_at_most(passed / PASSED_PART - before / PASSED_PART, limit->now - 1u);
}

void tsl_bin_shorten(struct tsl_heap *heap, unsigned class, unsigned blocks) {
  tsl_assert(tsl_owner_is_me(heap));
  struct tsl_bin_limit *limit = &heap->store->limits[class];
  int32_t room = tsl_heap_room(heap, class);
  unsigned less = room < (int32_t)blocks ? (unsigned)(room < 0 ? 0 : room) : blocks;
  tsl_store_relaxed(&limit->now, (uint16_t)(limit->now - less));
  tsl_store_relaxed(&heap->bins[class].room, heap->bins[class].room - (int32_t)less);
}

static bool lasts(const struct tsl_heap *heap) {
  return tsl_heap_is_home(heap) || tsl_epoch_is_shared(tsl_epoch_at(heap->epoch));
}

// What the limit may become. A bin as long as usual does not hold all bursts of a program: one that
// is a little longer it can learn, and a much longer one goes to the slabs in either case. What
// passed a full bin is told in pieces (tally.h): one of these is little.
static unsigned learns_up_to(const struct tsl_heap *heap, unsigned class) {
  const struct tsl_bin_limit *limit = &heap->store->limits[class];
  size_t little = tsl_at_least(limit->most / LITTLE_PART, tsl_tally_most_untold[class]);
  bool is_little = limit->passed <= little;
  return is_little && lasts(heap) ? tsl_bin_longest(class) : tsl_bin_usual(class);
}

void tsl_bin_refilled(struct tsl_heap *heap, unsigned class) {
  tsl_assert(tsl_owner_is_me(heap));
  struct tsl_bin_limit *limit = &heap->store->limits[class];
  if (limit->passed != 0) {
    size_t learned = tsl_at_most(2u * limit->most, learns_up_to(heap, class));
    limit->most = (uint16_t)tsl_at_least(limit->most, learned);
    limit->passed = 0;
  }
  int32_t more = limit->most - limit->now;
  tsl_store_relaxed(&limit->now, limit->most);
  tsl_store_relaxed(&heap->bins[class].room, heap->bins[class].room + more);
}

// Reports a head that was never handed out.
static void bin_check_head(struct tsl_heap *heap, unsigned class) {
  tsl_bin_check(heap, class);
  const void *block = heap->bins[class].head;
  if (block == &tsl_bin_end || tsl_entry_owner(tsl_map_lookup(block)) != heap->number) return;
  struct tsl_position position = tsl_slab_position(class, block);
  bool is_out = position.index >= 0 && !tsl_slab_has(position) &&
                !tsl_stock_has(&heap->store->stocks[class], block);
  if (is_out) return;
  tsl_bin_pop(heap, class);
  tsl_misuse_interior(block);
}

void tsl_bin_check_all(struct tsl_heap *heap) {
  for (unsigned class = 0; class < TSL_BINS; class += 1) bin_check_head(heap, class);
}

// The fork may have come when an allocation had taken the head's mark, and 1 more where the
// counters were due, but not the head: the head is on the bin, and gets its mark back.
void tsl_bin_mend(struct tsl_heap *heap, unsigned class) {
  struct tsl_bin *bin = &heap->bins[class];
  struct tsl_bin_limit *limit = &heap->store->limits[class];
  struct tsl_free_block *block = bin->head;
  unsigned length = 0, longest = tsl_bin_longest(class);
  limit->now = limit->most = (uint16_t)tsl_bin_usual(class);
  if (block != &tsl_bin_end && block->mark + 1 <= 1) block->mark = (uintptr_t)heap;
  for (; block != &tsl_bin_end && length != longest && block_is_whole(heap, class, block); length++)
    block = next_of(block);  // pairs: bin-head
  if (block != &tsl_bin_end) return bin_clear(heap, class);
  limit->now = limit->most = (uint16_t)tsl_at_least(length, limit->most);
  bin->room = limit->now - (int32_t)length;
  heap->store->seen[class] = bin->until;
}

bool tsl_bin_valid(const struct tsl_heap *heap, unsigned class) {
  const struct tsl_bin *bin = &heap->bins[class];
  const struct tsl_bin_limit *limit = &heap->store->limits[class];
  uint32_t length = 0;
  for (const struct tsl_free_block *block = bin->head; block != &tsl_bin_end; length++) {
    uint32_t entry = tsl_map_lookup(block), owner = tsl_entry_owner(entry);
    if (tsl_entry_code(entry) != tsl_class_code(class) || block->mark != (uintptr_t)heap)
      return false;
    if (owner != heap->number && (class < TSL_CLASS_OF_1280 || heap->epoch != 0)) return false;
    if (length == limit->now) return false;  // B6
    block = next_of(block);
  }
  if (!tsl_heap_has_store(heap)) return length == 0;
  if (limit->now > limit->most || limit->most > tsl_bin_longest(class)) return false;
  return (int32_t)length + tsl_heap_room(heap, class) == (int32_t)limit->now;
}
