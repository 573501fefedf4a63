#include "heap/visit.h"

#include "state/owner.h"

// No other thread writes the entry now: the owner closes the slab only after it has collected from
// it, which it does after this thread has pushed it. Where the owner takes the mark off before
// that, it has seen the mark.
void tsl_visit_begin(uint32_t owner, unsigned class, const struct tsl_slab *slab) {
  if (TSL_SECURE || class >= TSL_GATHERS || !tsl_owner_is_home(owner)) return;
  if (tsl_load_relaxed(&tsl_home_at(owner)->unvisited) != 0) return;
  uint32_t *entry = tsl_map_entry(tsl_slab_unit(slab));
  tsl_store_relaxed(entry, tsl_load_relaxed(entry) | TSL_CODE_VISITED);
}

// The next free that arrives in a collected slab begins a new visit. A free that waits in a gather
// begins none before it is sent.
void tsl_visit_end(const struct tsl_slab *slab) {
  uint32_t *entry = tsl_map_entry(tsl_slab_unit(slab));
  uint32_t visited = tsl_load_relaxed(entry);
  if ((visited & TSL_CODE_VISITED) != 0) tsl_store_relaxed(entry, visited ^ TSL_CODE_VISITED);
}

// Whether the block waits in a gather: its bit is in `opened` and no longer in `out`. All that is
// read belongs to one round, in which bits only vanish: from `out` when a block is freed, from
// `opened` when it is sent.
static bool waits(const struct tsl_gather *gather, uint32_t owner, unsigned class,
                  const void *block) {
  uint32_t round = tsl_load_acquire(&gather->round);       // pairs: gather-round
  uint64_t waiting = tsl_load_acquire(&gather->opened);    // pairs: gather-round
  waiting &= ~tsl_load_acquire(&gather->out);              // pairs: gather-round
  uintptr_t start = tsl_load_acquire(&gather->start);      // pairs: gather-round
  bool is_of = tsl_load_acquire(&gather->owner) == owner;  // pairs: gather-round
  if (!is_of || round % 2 != 0 || tsl_load_relaxed(&gather->round) != round) return false;
  bool exact;
  size_t index = tsl_sizeclass_divide(class, (uintptr_t)block - start, &exact);
  return exact && index < 64 && (waiting >> index & 1) != 0;
}

bool tsl_visit_is_free(uint32_t owner, unsigned class, struct tsl_position position,
                       const void *block) {
  if (tsl_slab_has(position)) return true;
  if (class >= TSL_GATHERS) return false;
  uint32_t gatherer = tsl_load_acquire(&position.slab->gatherer);  // pairs: gatherer
  return gatherer != 0 && waits(&tsl_home_at(gatherer)->own->gathers[class], owner, class, block);
}

bool tsl_visit_has(struct tsl_home *home, unsigned class, struct tsl_position position,
                   const void *block) {
  tsl_assert(tsl_owner_is_me(&home->heap));
  uint32_t *checks = &home->own->visits.checks;
  if (*checks == TSL_VISIT_CHECKS) {
    tsl_visit_end(position.slab);
    return false;
  }
  if (tsl_visit_is_free(home->heap.number, class, position, block)) return true;
  if (++*checks == TSL_VISIT_CHECKS) tsl_store_relaxed(&home->unvisited, 1);
  return false;
}

void tsl_visit_tick(struct tsl_home *home) {
  tsl_assert(tsl_owner_is_me(&home->heap));
  struct tsl_visits *visits = &home->own->visits;
  if (visits->checks != TSL_VISIT_CHECKS || ++visits->ticks < TSL_VISIT_PAUSE) return;
  *visits = (struct tsl_visits){0};
  tsl_store_relaxed(&home->unvisited, 0);
}
