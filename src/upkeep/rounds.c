#include "upkeep/rounds.h"

#include "heap/home_units.h"
#include "heap/loose.h"
#include "heap/warm.h"
#include "memory/limit.h"
#include "memory/purge.h"
#include "os/os.h"
#include "state/change.h"
#include "state/epoch.h"
#include "upkeep/pool.h"
#include "upkeep/sparse.h"
#include "upkeep/thin.h"

enum {
  CANDIDATES = 256,  // homes that are considered for the next round
  TURNS = 8,         // of one step; in each a heap is tended
  PASSES = 64,       // of a turn: parts that have nothing to tend
  REFUSED_MS = 5     // from a round that could not begin, or go on, to the next attempt
};

#define NEVER UINT64_MAX

static uint32_t last;                 // [helper] the home considered last; 0: a lap begins
static bool lap_found;                // [helper] in this lap over all homes one was due
static uint64_t lap_due_ms = NEVER;   // [helper] and the next one of the others will be
static uint64_t next_due_ms = NEVER;  // [helper] the same of the last lap
static uint32_t current;              // [helper] the home whose round goes on; 0: none
static uint32_t turn;                 // [helper] of this round, the heap whose turn it is
static uint32_t ready_so_far;         // [helper] ready_heads, of those that this round came to
static bool cells_are_done;           // [helper] its older cells were looked at, or it has none
static enum tsl_sparse_round found;   // [helper] in the heaps of this round that were tended
static uint64_t waits_ms;             // [helper] a home waits until then

// A home that a fork left torn is not tended.
static struct tsl_home *home_if_whole(uint32_t number) {
  const struct tsl_heap *heap = tsl_heap_at(number);
  if (!tsl_heap_is_ready(heap)) return NULL;
  return tsl_load_relaxed(&heap->torn) == TSL_HEAP_WHOLE ? heap->home : NULL;
}

// Whether the helper may tend the part: nobody acts for its owner (C5), which is asked first, it
// has slabs or older cells, and no fork left it torn or half sealed. While the helper tends the
// home.
static bool is_for_me(const struct tsl_part *part) {
  const struct tsl_heap *heap = &part->heap;
  if (tsl_change_is_shut(part)) return false;
  if (!tsl_heap_has_store(heap) && !tsl_thin_has(heap)) return false;
  if (tsl_load_relaxed(&heap->torn) != TSL_HEAP_WHOLE) return false;
  if (tsl_load_relaxed(&part->sealing) != TSL_PART_UNSEALED) return false;
  return tsl_epoch_at(heap->epoch)->purge != TSLAB_PURGE_KEEP;
}

// The heads of the stacks of slabs with remote bits, added up over the heaps that a round tends:
// it changes when others free.
static uint32_t ready_heads(const struct tsl_home *home) {
  uint32_t sum = (uint32_t)tsl_load_relaxed(&home->heap.ready);
  uint32_t number = tsl_load_acquire(&home->own->grown);  // pairs: grown-parts
  for (; number != 0; number = tsl_part_at(number)->grown_next)
    sum += (uint32_t)tsl_load_relaxed(&tsl_heap_at(number)->ready);
  return sum;
}

// A part that grows again comes back. A fork between the two stores leaves it unlisted and marked:
// the child does not tend it, which is better than to list it twice.
static void unlist(uint32_t *link,  // NOLINT(readability-non-const-parameter)
                   struct tsl_part *part) {
  tsl_store_relaxed(link, part->grown_next);
  tsl_compiler_fence();  // pairs: grown-parts
  part->is_grown = false;
}

// The part that is next on the home's list behind a heap of the same home; 0 behind the last. Some
// that are not for the helper are passed over, no more, because the owner waits meanwhile; those
// that have ended leave the list.
static uint32_t part_behind(struct tsl_heap *heap) {
  bool is_home = tsl_heap_is_home(heap);
  uint32_t *link = is_home ? &heap->home->own->grown : &tsl_part_of(heap)->grown_next;
  uint32_t number = tsl_load_acquire(link);  // pairs: grown-parts
  for (unsigned passes = PASSES; passes != 0 && number != 0; passes--) {
    struct tsl_part *part = tsl_part_at(number);
    if (is_for_me(part)) break;
    if (tsl_load_relaxed(&part->sealing) == TSL_PART_SEALED) {
      unlist(link, part);
    } else {
      ready_so_far += (uint32_t)tsl_load_relaxed(&part->heap.ready);
      link = &part->grown_next;
    }
    number = tsl_load_relaxed(link);
  }
  return number;
}

// RO1
static uint64_t home_due_ms(const struct tsl_home *home, uint64_t now_ms) {
  bool is_loose = tsl_load_relaxed(&home->loosened) != 0 || tsl_warm_is_due(home, now_ms);
  if (!is_loose && home->look_ms != 0) return home->look_ms;
  return is_loose || ready_heads(home) != home->ready_seen ? home->rest_ms : NEVER;
}

static bool home_is_due(const struct tsl_home *home, uint64_t now_ms) {
  uint64_t due_ms = home_due_ms(home, now_ms);
  if (now_ms >= due_ms) return lap_found = true;
  if (due_ms < lap_due_ms) lap_due_ms = due_ms;
  return false;
}

// RO2. A home that has just come to the pool is looked at once more.
static enum tsl_sparse_round rest_if_pooled(struct tsl_home *home) {
  bool was_pooled = home->was_pooled;
  home->was_pooled = tsl_load_relaxed(&home->hold) == TSL_HOME_POOLED;
  if (!home->was_pooled) return TSL_ROUND_RESTS;
  if (!was_pooled) return TSL_ROUND_CHANGES;
  tsl_pool_rest(home);
  return TSL_ROUND_RESTS;
}

static void turn_begin(uint32_t number) {
  turn = number;
  cells_are_done = false;
  if (number != 0) ready_so_far += (uint32_t)tsl_load_relaxed(&tsl_heap_at(number)->ready);
}

static void round_begin(struct tsl_home *home, uint32_t number, uint64_t now_ms) {
  current = number;
  ready_so_far = 0;
  turn_begin(number);
  found = rest_if_pooled(home);
  home->rest_ms = now_ms + tsl_limit_delay_ms() + 1;
  tsl_store_relaxed(&home->loosened, 0);
  tsl_loose_take(home);
  tsl_purge_see_sent();
  home->look_ms = 0;
}

// NULL at the end of a lap.
static struct tsl_home *round_next(uint64_t now_ms) {
  if (current != 0) return tsl_home_at(current);
  for (unsigned i = 0; i < CANDIDATES; i++) {
    last = tsl_home_behind(last);
    if (last == 0) return NULL;
    struct tsl_home *home = home_if_whole(last);
    if (home == NULL || !home_is_due(home, now_ms)) continue;
    round_begin(home, last, now_ms);
    return home;
  }
  return NULL;
}

// The next round comes to the slabs in the same order, so most of those that wait are due then.
static void round_ended(struct tsl_home *home) {
  current = 0;
  home->ready_seen = ready_so_far;
  if (found != TSL_ROUND_RESTS) home->look_ms = home->rest_ms;
  if (found == TSL_ROUND_WAITS) waits_ms = home->look_ms;
  if (found != TSL_ROUND_WAITS) tsl_store_relaxed(&home->rounds, home->rounds + 1);
}

// RO2. Once a round, while the helper tends the home.
static void tend_units(struct tsl_home *home) {
  bool is_needed = home->opened != home->opened_seen;
  home->opened_seen = home->opened;
  if (!is_needed) return tsl_home_units_tend(home);
  if (home->unit_count != 0 && found > TSL_ROUND_CHANGES) found = TSL_ROUND_CHANGES;
}

// False while there are others to look at.
static bool note(enum tsl_sparse_round round) {
  if (round == TSL_ROUND_GOES_ON) return false;
  if (round < found) found = round;
  return true;
}

// Older cells, then slabs. True when the heap has no others.
static bool heap_tend(struct tsl_heap *heap, bool is_home) {
  if (!cells_are_done) cells_are_done = is_home || note(tsl_thin_tend(heap));
  if (!cells_are_done) return false;
  return !tsl_heap_has_store(heap) || note(tsl_sparse_tend(heap));
}

// Tends some cells or slabs of the heap whose turn it is; after its last one the turn is the next
// heap's, which begins at once behind a part without slabs. True when there is none: the round has
// ended.
static bool tend(struct tsl_home *home, uint64_t now_ms) {
  bool is_short = true;
  while (is_short && turn != 0) {
    struct tsl_heap *heap = tsl_heap_at(turn);
    bool is_home = tsl_heap_is_home(heap);
    bool is_tended = is_home || is_for_me(tsl_part_of(heap));  // it may have been sealed since
    if (!is_tended) note(tsl_thin_end());
    if (is_tended && !heap_tend(heap, is_home)) return false;
    if (is_home) {
      tend_units(home);
      tsl_warm_tend(home, now_ms);
    }
    is_short = is_tended && !tsl_heap_has_store(heap);
    turn_begin(part_behind(heap));
  }
  return turn == 0;
}

// The home is in a change: its round ends without a result, and another one is due soon. Each
// attempt interrupts all threads that run.
static void round_refused(struct tsl_home *home, uint64_t now_ms) {
  tsl_store_relaxed(&home->loosened, 1);
  home->heap.store->tender.before = UINT64_MAX;  // what the round found so far counts as news again
  home->rest_ms = now_ms + REFUSED_MS;
  tsl_thin_end();
  current = 0;
}

// One turn of a round. False when no home is due.
static bool turn_take(void) {
  uint64_t now_ms = tsl_os_now_ms();
  struct tsl_home *home = tsl_tend_is_possible ? round_next(now_ms) : NULL;
  if (home == NULL) return false;
  if (!tsl_tend_begin(home)) return round_refused(home, now_ms), true;
  tsl_thin_begin_turn();
  bool has_ended = tend(home, now_ms);
  tsl_tend_end(home);
  if (has_ended) round_ended(home);
  return true;
}

bool tsl_rounds_step(void) {
  unsigned turns = 0;
  tsl_sparse_end_window(tsl_os_now_ms());
  while (turns < TURNS && turn_take()) turns++;
  next_due_ms = last != 0 || lap_found ? 0 : lap_due_ms;
  if (next_due_ms == NEVER) tsl_purge_see_sent();  // what no home can give keeps no helper
  if (last == 0) {
    lap_found = false;
    lap_due_ms = NEVER;
  }
  return turns == TURNS;
}

uint64_t tsl_rounds_due_ms(void) { return next_due_ms; }

bool tsl_rounds_are_missing(void) {
  if (!tsl_tend_is_possible) return false;
  for (uint32_t number = tsl_home_behind(0); number != 0; number = tsl_home_behind(number)) {
    const struct tsl_home *home = home_if_whole(number);
    if (home != NULL && tsl_load_relaxed(&home->loosened) != 0) return true;
  }
  return false;
}

bool tsl_rounds_wait(void) { return tsl_os_now_ms() <= waits_ms; }

void tsl_rounds_after_fork(void) {
  last = 0;
  current = 0;
  waits_ms = 0;
  tsl_thin_end();
  for (uint32_t number = tsl_home_behind(0); number != 0; number = tsl_home_behind(number)) {
    if (!tsl_heap_is_ready(tsl_heap_at(number))) continue;
    tsl_store_relaxed(&tsl_home_at(number)->tended, 0);
    tsl_loose_take(tsl_home_at(number));
  }
  tsl_purge_forget_loose();
}
