// places: the epochs of a shadow, each in its place, and what follows from where they lie.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <tslab.h>

#include "gate.h"
#include "shadow.h"
#include "stale.h"

enum { PLACES = 24 };

enum state { GONE, OPEN, CLOSING, CLOSED };

// An epoch of the shadow; the first one is the default epoch.
static struct place {
  struct gate gate;
  atomic_int state;
  _Atomic tslab_epoch id, parent;
  atomic_long live;
  atomic_long deferred, deferred_runs;
  atomic_bool limited;
  atomic_ulong resets;         // of all epochs that were here
  atomic_long kept;            // of `live`: the end of the epoch spares them
  atomic_long spared;          // resets did, and they live on
  atomic_bool shares;          // its objects may lie in memory of its label or of its parent,
  atomic_bool lies_elsewhere;  // and none in its own
} places[PLACES];

static inline struct place *place_choose(struct random *random) {
  return &places[random_below(random, PLACES)];
}

static inline bool has_children(const struct place *parent) {
  for (int i = 1; i < PLACES; i++)
    if (parent != &places[0] && places[i].parent == parent->id) return true;
  return false;
}

// Its figures are not those of its own objects, and who has it alone is not alone in its memory.
static inline bool is_vague(const struct place *place) {
  for (int i = 1; i < PLACES; i++)
    if (places[i].shares && places[i].state != GONE && places[i].parent == place->id) return true;
  return place->shares;
}

static tslab_epoch shared_one;  // the label's, which never ends

// Not under ThreadSanitizer, which finds that a reader does not wait for the helper's work in homes
// of ended threads: such figures are of some moment.
static inline void shared_check(void) {
#if !defined(__SANITIZE_THREAD__)
  tslab_epoch_stats stats = {.size = sizeof stats, .live_objects = 1};
  for (int i = 0; i < STALE_TRIES && stats.live_objects != 0; i++, usleep(1000))
    CHECK_EQ(tslab_epoch_get_stats(shared_one, &stats), 0);
  CHECK_EQ(stats.live_objects, 0);
#endif
}

// A guest whose host was closed goes outside of epochs.
static inline bool may_lie_in(const struct place *place, tslab_epoch site) {
  if (!place->lies_elsewhere) return site == place->id;
  return place->parent == 0 ? site == shared_one : site == place->parent || site == TSLAB_DEFAULT;
}

static inline bool is_drained(const struct place *place) {
  bool is_empty = place->live == 0 && place->spared == 0;
  return place->state == CLOSED && is_empty && !has_children(place);
}

static bool releases_wait;  // option `release` is poison: the last 64 and their parents are there

static inline void over_check(const struct place *place) {
  if (!releases_wait) stale_check(place->id);
}

static inline bool is_limited(const struct place *place) {
  for (int i = 1; i < PLACES; i++)
    if (place->parent != 0 && places[i].id == place->parent && places[i].limited) return true;
  return place->limited;
}

static inline bool is_child(const struct place *place, const struct place *parent) {
  return parent->state != GONE && place->parent == parent->id;
}

// Takes the children's gates as well: they end, too. Until its gate is taken, a child may end and
// its place get an epoch of another parent.
static inline bool family_take(struct place *parent, struct place **family, int *count) {
  *count = 0;
  if (!gate_take(&parent->gate)) return false;
  family[(*count)++] = parent;
  for (int i = 1; i < PLACES; i++) {
    if (!is_child(&places[i], parent)) continue;
    if (!gate_take(&places[i].gate)) return false;
    if (is_child(&places[i], parent))
      family[(*count)++] = &places[i];
    else
      gate_give(&places[i].gate);
  }
  return true;
}
