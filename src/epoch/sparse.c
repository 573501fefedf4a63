#include "epoch/sparse.h"

#include "base/options.h"
#include "memory/record.h"
#include "os/os.h"

// What one step does for each millisecond since the last, of which no more than MOST_MS count.
enum { LOOKS = 32, PURGES = 8, MOST_MS = 4 };

// A slab is sparse when at most this part of it is out.
enum { SPARSE_PART = 4 };

static bool is_sparse(const struct tsl_slab *slab) {
  return slab->listed && slab->out * SPARSE_PART <= tsl_sizeclasses[slab->class].capacity;
}

enum state { DENSE, WAITING, DUE };

// Due is a slab that has been sparse for long enough, until it is taken from again.
static enum state look_at(struct tsl_slab *slab, uint32_t now_ms) {
  if (!is_sparse(slab)) {
    slab->sparse_ms = 0;
    return DENSE;
  }
  if (slab->purged) return DENSE;
  if (slab->sparse_ms == 0) slab->sparse_ms = now_ms == 0 ? 1 : now_ms;
  return now_ms - slab->sparse_ms >= (uint32_t)tsl_option(purge_delay_ms) ? DUE : WAITING;
}

// Milliseconds that this step may make up for; 0 when none has passed.
static unsigned step_begin(struct tsl_store *store, uint64_t now_ms) {
  if (now_ms < store->sparse_due_ms) return 0;
  uint64_t passed = now_ms + 1 - store->sparse_due_ms;
  store->sparse_due_ms = now_ms + 1;
  return passed < MOST_MS ? (unsigned)passed : MOST_MS;
}

// The slab to look at next. 0 at the end of a round: `round_waits` then tells of that round.
static tsl_unit step_next(const struct tsl_heap *home) {
  struct tsl_store *store = home->store;
  tsl_unit unit = store->sparse_next;
  store->sparse_next = unit == 0 ? home->slabs : tsl_span_at(unit)->next;
  if (unit != 0) return unit;
  store->round_waits = store->slabs_wait;
  store->slabs_wait = false;
  return 0;
}

bool tsl_sparse_step(struct tsl_heap *home) {
  struct tsl_store *store = home->store;
  uint64_t now_ms = tsl_os_now_ms();
  unsigned passed_ms = step_begin(store, now_ms), purges = passed_ms * PURGES;
  for (unsigned looks = passed_ms * LOOKS; looks != 0 && purges != 0; looks--) {
    tsl_unit unit = step_next(home);
    if (unit == 0) continue;
    enum state state = look_at(tsl_slab_at(unit), (uint32_t)now_ms);
    store->slabs_wait |= state == WAITING;
    if (state != DUE) continue;
    tsl_slab_purge(tsl_slab_at(unit));
    purges--;
  }
  return store->round_waits || store->slabs_wait;
}
