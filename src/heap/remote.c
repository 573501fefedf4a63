#include "heap/remote.h"

#include "heap/drained.h"
#include "heap/loose.h"
#include "heap/visit.h"
#include "memory/kept.h"
#include "slab/canary.h"
#include "state/epoch.h"
#include "state/history.h"
#include "state/misuse.h"
#include "state/owner.h"
#include "state/quarantine.h"
#include "tell/epochs.h"
#include "tell/heaps.h"

enum { PASSING_FREES = 64 };  // until a heap that did not stay is asked again

// False when the heap was sealed meanwhile: nobody will look at its stack.
TSL_NOINLINE static bool push_ready(uint32_t owner, struct tsl_slab *slab) {
  if (owner == TSL_HEAP_SEALED) return false;
  struct tsl_heap *heap = tsl_heap_at(owner);
  uint64_t head = tsl_load_relaxed(&heap->ready), next;
  do {
    if ((uint32_t)(head >> 32) != slab->life) return false;
    slab->ready_next = (tsl_unit)head;
    next = (uint64_t)slab->life << 32 | tsl_slab_unit(slab);
  } while (!tsl_cas_release(&heap->ready, &head, next));  // pairs: ready
  return true;
}

// A free in a sealed slab: one of those that its seal counted.
static enum tsl_remote put_late(struct tsl_slab *slab, const void *block) {
  uint32_t epoch = tsl_span_at(tsl_slab_unit(slab))->epoch;
  tsl_history_freed(tsl_epoch_at(epoch)->label);
  tsl_report_survivor_freed(epoch, slab->class);
  if (tsl_unlikely(tsl_epoch_keeps(epoch))) tsl_kept_clear(block);  // KE1
  return tsl_slab_count_down(slab);
}

static void put_blocks(uint32_t owner, unsigned class, struct tsl_position position,
                       uint64_t blocks) {
  struct tsl_slab *slab = position.slab;
  unsigned index = (unsigned)position.index;
  blocks <<= index % 64;
  unsigned count = tsl_bit_count(blocks);
  enum tsl_remote result = tsl_slab_put_remote(slab, index / 64, &blocks);
  if (tsl_likely(result == TSL_REMOTE_DONE)) return tsl_loose_send(owner, class, count);
  if (result == TSL_REMOTE_TWICE) return tsl_misuse_twice(tsl_slab_first(slab, index / 64, blocks));
  if (result == TSL_REMOTE_LATE) result = put_late(slab, tsl_slab_first(slab, index / 64, blocks));
  if (result == TSL_REMOTE_PUSH) {
    tsl_loose_send(owner, class, count);
    tsl_visit_begin(owner, class, slab);
  }
  if (result == TSL_REMOTE_PUSH && !push_ready(owner, slab)) result = tsl_slab_count_down(slab);
  if (result == TSL_REMOTE_EMPTY) tsl_heap_drained(slab);
}

// Counts a free that its owner has not collected yet: a home's block in the home of the freeing
// thread, a part's block in the row of the part.
static void count_sent(uint32_t owner, unsigned class) {
  struct tsl_home *home = tsl_heap_current->home;
  if (owner == TSL_HEAP_SEALED || class >= TSL_CLASSES) return;
  if (!tsl_owner_is_home(owner)) return tsl_report_away_of_slab(owner, class, 1);
  if (home == &tsl_home_empty) return tsl_report_homeless(class);
  home->heap.store->tallies[class].sent++;
  tsl_report_sent(home, class);
}

// Wipes a block of the secure build that was not freed before. False when the quarantine has it, or
// another thread frees it now.
static bool wipe(unsigned class, void *block) {
  if (tsl_quarantine_has(block)) return false;
  if (tsl_canary_has(block)) {
    bool is_whole = tsl_canary_is_whole(block, class);
    if (!tsl_canary_take(block)) return false;
    if (!is_whole) tsl_misuse_overflow(block);
  }
  tsl_secure_wipe(block, tsl_sizeclasses[class].bytes);
  return true;
}

// Whether its epoch was released, and did not spare it. Its bit is taken off after the slab has got
// its rank.
static bool is_late_in(const struct tsl_slab *slab, const void *block) {
  uint32_t epoch = tsl_load_relaxed(&tsl_span_at(tsl_slab_unit(slab))->epoch);
  if (!tsl_epoch_waits(epoch)) return false;
  bool is_kept = tsl_epoch_keeps(epoch) && tsl_kept_has(block);  // pairs: kept
  return !is_kept && tsl_slab_rank(slab) == 0;                   // pairs: kept
}

void tsl_remote_put(uint32_t owner, unsigned class, void *block) {
  struct tsl_position position = tsl_slab_position(class, block);
  if (tsl_unlikely(position.index < 0)) return tsl_misuse_interior(block);
  if (owner == TSL_HEAP_SEALED && is_late_in(position.slab, block))
    return tsl_misuse_late_free(block);
  if (TSL_SECURE && !wipe(class, block)) return tsl_misuse_twice(block);
  count_sent(owner, class);
  put_blocks(owner, class, position, 1);
}

static void note_owner(struct tsl_home *home, uint32_t owner, unsigned class) {
  uint32_t bit = UINT32_C(1) << class, others = home->own->gathers_of_homes & ~bit;
  home->own->gathers_of_homes = tsl_owner_is_home(owner) ? others | bit : others;
}

// 1 or 0. What waits for a home is counted as it is freed, what waits for a part as it is sent.
static uint32_t is_of_home(const struct tsl_home *home, unsigned class) {
  return home->own->gathers_of_homes >> class & 1;
}

// `opened` is stored before the blocks are put: a thread that a fork takes in between loses them in
// the child, and does not put them twice.
void tsl_remote_send(struct tsl_home *home, unsigned class) {
  tsl_assert(tsl_owner_is_me(&home->heap));
  struct tsl_gather *gather = &home->own->gathers[class];
  uint64_t blocks = gather->opened & ~gather->out;
  if (blocks == 0) return;
  tsl_store_relaxed(&gather->opened, gather->out);
  struct tsl_position position = tsl_slab_position(class, (void *)gather->start);
  if (is_of_home(home, class) == 0)
    tsl_report_away_of_slab(gather->owner, class, tsl_bit_count(blocks));
  put_blocks(gather->owner, class, position, blocks);
}

void tsl_remote_send_all(struct tsl_home *home) {
  for (unsigned class = 0; class < TSL_GATHERS; class += 1) tsl_remote_send(home, class);
}

uint32_t tsl_remote_waiting(const struct tsl_home *home, unsigned class) {
  const struct tsl_gather *gather = &home->own->gathers[class];
  uint64_t opened = tsl_load_acquire(&gather->opened);  // pairs: gather
  return tsl_bit_count(opened & ~tsl_load_relaxed(&gather->out));
}

uint32_t tsl_remote_waiting_for(const struct tsl_home *home, unsigned class, uint32_t *part) {
  const struct tsl_gather *gather = &home->own->gathers[class];
  uint32_t round = tsl_load_acquire(&gather->round);     // pairs: gather-round
  uint64_t waiting = tsl_load_acquire(&gather->opened);  // pairs: gather-round
  waiting &= ~tsl_load_acquire(&gather->out);            // pairs: gather-round
  *part = tsl_load_acquire(&gather->owner);              // pairs: gather-round
  bool is_whole = round % 2 == 0 && tsl_load_relaxed(&gather->round) == round;
  return is_whole && waiting != 0 && !tsl_owner_is_home(*part) ? tsl_bit_count(waiting) : 0;
}

// A fork may come between any two stores: the child finds a gather in which nothing waits.
static void gather_begin(struct tsl_gather *gather, uintptr_t start, uint32_t owner,
                         uint64_t others) {
  uint32_t round = gather->round;
  tsl_store_relaxed(&gather->round, round + 1);
  tsl_store_release(&gather->opened, 0);         // pairs: gather-round
  tsl_compiler_fence();                          // pairs: gather
  tsl_store_release(&gather->start, start);      // pairs: gather-round
  tsl_store_release(&gather->owner, owner);      // pairs: gather-round
  tsl_store_release(&gather->out, others);       // pairs: gather-round
  tsl_store_release(&gather->opened, others);    // pairs: gather
  tsl_store_release(&gather->round, round + 2);  // pairs: gather-round
}

// A gather that was half begun has an odd round.
void tsl_remote_forget(struct tsl_home *home) {
  tsl_assert(tsl_owner_is_me(&home->heap));
  for (unsigned class = 0; class < TSL_GATHERS; class += 1) {
    struct tsl_gather *gather = &home->own->gathers[class];
    if (gather->round == 0) continue;
    gather->round &= ~UINT32_C(1);
    gather_begin(gather, 0, 0, 0);
  }
}

// Whether the owner's blocks may wait. The answer stands in lines that the owner's thread writes:
// so the last heap that did not stay is remembered for a while, though it may stay by now.
static bool stays(struct tsl_home_store *own, uint32_t owner) {
  if (owner == own->passing && own->passing_frees++ < PASSING_FREES) return false;
  own->passing = 0;
  own->passing_frees = 0;
  if (tsl_owner_stays(owner)) return true;
  own->passing = owner;
  return false;
}

// Makes the block's word the one to gather. The block itself is sent at once: a thread that frees
// here and there keeps no blocks back.
TSL_NOINLINE static void gather_open(struct tsl_home *home, uint32_t owner, unsigned class,
                                     void *block) {
  struct tsl_position position = tsl_slab_position(class, block);
  if (position.index < 0) return tsl_misuse_interior(block);
  if (!stays(home->own, owner)) return tsl_remote_put(owner, class, block);
  struct tsl_gather *gather = &home->own->gathers[class];
  unsigned word = (unsigned)position.index / 64, bit = (unsigned)position.index % 64;
  uintptr_t start = (uintptr_t)block - (size_t)bit * tsl_sizeclasses[class].bytes;
  if (start == gather->start && owner == gather->owner && (gather->opened >> bit & 1) != 0)
    return tsl_misuse_twice(block);
  tsl_remote_send(home, class);
  tsl_remote_send(home, class);  // what was freed as the first one called a helper
  uint64_t others =
      tsl_low_bits(tsl_sizeclasses[class].capacity - word * 64) & ~(UINT64_C(1) << bit);
  gather_begin(gather, start, owner, others);
  note_owner(home, owner, class);
  tsl_store_release(&position.slab->gatherer, home->heap.number);  // pairs: gatherer
  count_sent(owner, class);
  put_blocks(owner, class, position, 1);
}

bool tsl_remote_valid(const struct tsl_home *home) {
  for (unsigned class = 0; class < TSL_GATHERS; class += 1) {
    const struct tsl_gather *gather = &home->own->gathers[class];
    if ((gather->out & ~gather->opened) != 0 || gather->round % 2 != 0) return false;
  }
  return true;
}

// In the word that is gathered a free costs no atomic operation.
void tsl_remote_gather(struct tsl_home *home, uint32_t owner, unsigned class, void *block) {
  tsl_assert(tsl_owner_is_me(&home->heap));
  if (TSL_SECURE) return tsl_remote_put(owner, class, block);
  struct tsl_gather *gather = &home->own->gathers[class];
  bool exact;
  size_t index = tsl_sizeclass_divide(class, (uintptr_t)block - gather->start, &exact);
  bool is_there = exact && index < 64 && gather->owner == owner;
  if (tsl_unlikely(!is_there || (gather->out >> index & 1) == 0))
    return gather_open(home, owner, class, block);
  tsl_store_relaxed(&gather->out, gather->out ^ UINT64_C(1) << index);
  home->heap.store->tallies[class].sent += is_of_home(home, class);
}
