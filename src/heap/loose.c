#include "heap/loose.h"

#include "base/bits.h"
#include "base/options.h"
#include "memory/purge.h"
#include "state/bin.h"
#include "state/change.h"
#include "state/epoch.h"
#include "state/owner.h"

enum {
  LOOK_BYTES = 256 << 10,  // freed in a thread's slabs, from one sum of what is free to the next,
  PART_BYTES = 4 << 10,    // or so many for each part that is asked, where these are more,
  MOST_LOOK_BYTES = 1 << 20,  // but no more than these: nothing else tells of them
  HOT_BYTES = 128 << 10,      // that an ending thread leaves: less is left to the next thread
};

static size_t class_free_bytes(const struct tsl_heap *heap, unsigned class) {
  const struct tsl_tally *tally = &heap->store->tallies[class];
  uint32_t blocks = tally->slabs * tsl_sizeclasses[class].capacity - tsl_tally_out(tally);
  return (size_t)blocks * tsl_sizeclasses[class].bytes;
}

// That the heap's thread freed in cells which are still there.
static size_t cell_free_bytes(const struct tsl_heap *heap) {
  uint64_t freed = tsl_loose_freed(heap), gone = tsl_at_most(heap->gone_granules, freed);
  return (freed - gone) << TSL_GRANULE_LOG2;
}

static size_t heap_free_bytes(const struct tsl_heap *heap) {
  size_t bytes = cell_free_bytes(heap);
  if (!tsl_heap_has_store(heap)) return bytes;
  for (unsigned class = 0; class < TSL_BINS; class += 1) bytes += class_free_bytes(heap, class);
  return bytes;
}

// Over the home and its parts of shared epochs.
static size_t home_sum(const struct tsl_home *home, size_t (*bytes_of)(const struct tsl_heap *)) {
  size_t bytes = bytes_of(&home->heap);
  uint32_t number = home->own->shared;
  for (; number != 0; number = tsl_part_at(number)->shared_next)
    bytes += bytes_of(tsl_heap_at(number));
  return bytes;
}

// W4
static size_t warm_bytes(struct tsl_home *home) {
  struct tsl_change change = tsl_change_begin(home);
  size_t pages = 0;
  for (uint32_t i = 0; i < home->own->warm_count; i++)
    pages += tsl_heap_at(home->own->warm[i].part)->cell_pages;
  tsl_change_end(change);
  return pages << TSL_CELL_PAGE_LOG2;
}

// Adds what became free in the part since it was asked last. Of an earlier life nothing is left.
static void part_look(struct tsl_part *part) {
  struct tsl_loose *loose = &part->heap.home->own->loose;
  bool is_new = part->loose_life != part->heap.life;
  size_t bytes = heap_free_bytes(&part->heap), seen = is_new ? 0 : part->loose_seen;
  if (is_new) loose->parts_bytes -= tsl_at_most(part->loose_seen, loose->parts_bytes);
  part->loose_life = part->heap.life;
  part->loose_seen = bytes;
  if (bytes >= seen) loose->parts_bytes += bytes - seen;
  if (bytes < seen) loose->parts_bytes -= tsl_at_most(seen - bytes, loose->parts_bytes);
}

// The bytes that became free in the home's slabs since the helper's last round, and those of its
// warm parts, in which nothing lives. After a round, or where there is less free than at the last
// look, counting begins at what is free now.
static size_t loose_bytes(struct tsl_home *home) {
  struct tsl_loose *loose = &home->own->loose;
  uint32_t rounds = tsl_load_relaxed(&home->rounds);
  size_t bytes = home_sum(home, heap_free_bytes);
  if (rounds != loose->rounds_seen || bytes < loose->free_seen) loose->free_seen = bytes;
  if (rounds != loose->rounds_seen) loose->parts_bytes = 0;
  loose->rounds_seen = rounds;
  return bytes - loose->free_seen + loose->parts_bytes + loose->warm_bytes;
}

// Whether there can be a helper that takes the bytes off again.
static bool is_for_helper(void) {
  return tsl_tend_is_possible && tsl_option(helper) != TSL_HELPER_NEVER;
}

static void publish(struct tsl_home *home, size_t bytes) {
  tsl_purge_loosen(tsl_exchange_relaxed(&home->loose_bytes, bytes), bytes);
}

// Whether the heap is that of an epoch of its own.
static bool is_own_part(const struct tsl_heap *heap) {
  return !tsl_heap_is_home(heap) && !tsl_epoch_is_shared(tsl_epoch_at(heap->epoch));
}

// Or another thread acts for the owner of the part.
static bool is_ending(struct tsl_heap *heap) {
  if (!is_own_part(heap)) return false;
  return heap->home != tsl_heap_current->home ||
         tsl_load_relaxed(&tsl_part_of(heap)->sealing) != TSL_PART_UNSEALED;
}

static size_t look_bytes(const struct tsl_home *home) {
  size_t parts_bytes = (size_t)home->own->shared_count * PART_BYTES;
  return tsl_at_least(LOOK_BYTES, tsl_at_most(parts_bytes, MOST_LOOK_BYTES));
}

static void add(struct tsl_heap *heap, size_t bytes) {
  tsl_assert(tsl_owner_is_me(heap));
  struct tsl_home *home = heap->home;
  struct tsl_loose *loose = &home->own->loose;
  if (is_ending(heap)) return;
  tsl_store_relaxed(&home->loosened, 1);
  if (!is_for_helper()) return;
  loose->freed_bytes += bytes;
  if (loose->freed_bytes < look_bytes(home)) return;
  loose->freed_bytes = 0;
  if (is_own_part(heap)) part_look(tsl_part_of(heap));
  publish(home, loose_bytes(home));
  tsl_purge_call_helper(0);
}

void tsl_loose_add(struct tsl_heap *heap, unsigned class, uint32_t blocks) {
  add(heap, (size_t)blocks * tsl_sizeclasses[class].bytes);
}

// Each part is looked at: the cells of a thousand small ones are much together.
void tsl_loose_add_cells(struct tsl_heap *heap) {
  uint64_t freed = tsl_loose_freed(heap), more = freed - heap->loose_granules;
  heap->loose_granules = freed;
  if (is_own_part(heap) && !is_ending(heap)) part_look(tsl_part_of(heap));
  add(heap, more << TSL_GRANULE_LOG2);
}

static size_t homeless_bytes;  // [remote] that threads without a home have sent so far

static bool send_homeless(ptrdiff_t more_bytes) {
  if (more_bytes <= 0) return false;
  size_t before = tsl_add_relaxed(&homeless_bytes, (size_t)more_bytes);
  size_t bytes = tsl_round_down(before + (size_t)more_bytes, LOOK_BYTES);
  if (bytes <= before || !is_for_helper()) return false;
  tsl_purge_send(LOOK_BYTES);
  return true;
}

// Returns whether a sum was told of more that was sent.
static bool send(ptrdiff_t more_bytes) {
  struct tsl_home *home = tsl_heap_current->home;
  if (home == &tsl_home_empty) return send_homeless(more_bytes);
  ptrdiff_t *sent = &home->own->loose.sent_bytes;
  *sent += more_bytes;
  if (*sent > -LOOK_BYTES && *sent < LOOK_BYTES) return false;
  ptrdiff_t bytes = *sent;
  *sent = 0;
  if (!is_for_helper()) return false;
  tsl_purge_send(bytes);
  return bytes > 0;
}

// A slab to which others freed before is not pushed again, so that the owner's stack does not tell
// the helper of more.
void tsl_loose_send(uint32_t owner, unsigned class, unsigned blocks) {
  ptrdiff_t bytes = (ptrdiff_t)blocks * (ptrdiff_t)tsl_sizeclasses[class].bytes;
  if (tsl_likely(!send(bytes)) || owner >= TSL_HEAP_NOBODY) return;
  tsl_store_relaxed(&tsl_heap_at(owner)->home->loosened, 1);
  tsl_purge_call_helper(0);
}

static void loosen(uint32_t owner) {
  uint32_t *loosened = &tsl_heap_at(owner)->home->loosened;
  if (tsl_load_relaxed(loosened) == 0) tsl_store_relaxed(loosened, 1);
}

// Nothing else tells the helper of cells. The same owner is told again with each sum: the helper
// may have been there meanwhile. A thread without a home has no place for whom it told last.
void tsl_loose_send_in_cell(uint32_t owner, unsigned class) {
  struct tsl_home *home = tsl_heap_current->home;
  if (tsl_likely(home != &tsl_home_empty)) {
    struct tsl_loose *loose = &home->own->loose;
    ptrdiff_t sent = loose->sent_bytes + (ptrdiff_t)tsl_sizeclasses[class].bytes;
    if (tsl_likely(loose->sent_owner == owner && sent < LOOK_BYTES)) {
      loose->sent_bytes = sent;
      return;
    }
    loose->sent_owner = owner;
  }
  loosen(owner);
  tsl_loose_send(owner, class, 1);
}

void tsl_loose_collect(unsigned class, unsigned blocks) {
  tsl_loose_collect_bytes((size_t)blocks * tsl_sizeclasses[class].bytes);
}

void tsl_loose_collect_bytes(size_t bytes) { send(-(ptrdiff_t)bytes); }

void tsl_loose_add_warm(struct tsl_home *home) {
  tsl_assert(tsl_owner_is_me(&home->heap));
  struct tsl_loose *loose = &home->own->loose;
  bool is_any = tsl_load_relaxed(&home->own->warm_count) != 0;
  if ((!is_any && loose->warm_bytes == 0) || !is_for_helper()) return;
  loose->warm_bytes = warm_bytes(home);
  publish(home, loose_bytes(home));
  tsl_purge_call_helper(0);
}

// What a class's hot blocks keep resident at most: each may be the last one of its page.
static size_t class_hot_bytes(const struct tsl_heap *heap, unsigned class) {
  const struct tsl_sizeclass *sizeclass = &tsl_sizeclasses[class];
  size_t kept = tsl_at_least(sizeclass->bytes, (size_t)1 << TSL_CELL_PAGE_LOG2);
  size_t slabs = (size_t)heap->store->tallies[class].slabs * sizeclass->slab_bytes;
  return tsl_at_most(tsl_heap_hot_blocks(heap, class) * kept, slabs);
}

static size_t hot_bytes(const struct tsl_heap *heap) {
  size_t bytes = 0;
  if (!tsl_heap_has_store(heap)) return 0;
  for (unsigned class = 0; class < TSL_BINS; class += 1) bytes += class_hot_bytes(heap, class);
  return bytes;
}

void tsl_loose_add_hot(struct tsl_home *home) {
  tsl_assert(tsl_owner_is_me(&home->heap));
  size_t hot = home_sum(home, hot_bytes);
  if (hot < HOT_BYTES || !is_for_helper()) return;
  publish(home, loose_bytes(home) + hot);
  tsl_purge_call_helper(0);
}

void tsl_loose_take(struct tsl_home *home) { publish(home, 0); }
