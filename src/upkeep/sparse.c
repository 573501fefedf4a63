#include "upkeep/sparse.h"

#include "memory/limit.h"
#include "state/owner.h"
#include "tell/process.h"

// What one step does at most.
enum { STEP_LOOKS = 160, STEP_PURGES = 40 };

// Slabs, and system calls, after which the helper lets the home go: its owner may wait.
enum { TEND_LOOKS = 32, TEND_CALLS = 8 };

// A slab is sparse when at most this part of it is out.
enum { SPARSE_PART = 4 };

static bool is_sparse(const struct tsl_slab *slab, uint32_t out) {
  return out * SPARSE_PART <= tsl_sizeclasses[slab->class].capacity;
}

// Where slabs are taken from again whose pages went back, at least so many and half of those, each
// of which counts half with every window that passes, giving back costs faults and brings nothing.
// Then slabs wait SPARSE_PATIENCE delays, for so many windows (memory/window.h, for units, is like
// it).
enum { SPARSE_LEAST_AGAIN = 16, SPARSE_MOST_PATIENT = 64, SPARSE_PATIENCE = 4 };

static uint32_t slabs_given;       // [remote] so far
static uint64_t patient_until_ms;  // [helper, read by any]
static struct {
  uint64_t end_ms;
  uint32_t given_before, again_before;  // so far, at the end of the last one
  uint32_t given, again;                // in the last ones
} sparse_window;                        // [helper]

static uint32_t change_since(uint32_t total,
                             uint32_t *before) {  // NOLINT(readability-non-const-parameter)
  uint32_t change = total - *before;
  *before = total;
  return change;
}

void tsl_sparse_end_window(uint64_t now_ms) {
  if (now_ms < sparse_window.end_ms) return;
  uint64_t delay_ms = tsl_limit_delay_ms();
  uint32_t given = change_since(tsl_load_relaxed(&slabs_given), &sparse_window.given_before);
  uint32_t again = change_since(tsl_load_relaxed(&tsl_slab_refaults), &sparse_window.again_before);
  sparse_window.end_ms = now_ms + delay_ms;
  sparse_window.given = sparse_window.given / 2 + given;
  sparse_window.again = sparse_window.again / 2 + again;
  bool pays = again != 0 && sparse_window.again >= SPARSE_LEAST_AGAIN &&
              2 * sparse_window.again >= sparse_window.given;
  if (pays) tsl_store_relaxed(&patient_until_ms, now_ms + SPARSE_MOST_PATIENT * delay_ms);
}

static uint32_t sparse_delay_ms(void) {
  bool is_patient = tsl_os_now_ms() < tsl_load_relaxed(&patient_until_ms) && !tsl_limit_is_near();
  return (uint32_t)tsl_limit_delay_ms() * (is_patient ? SPARSE_PATIENCE : 1);
}

static void slab_given(const struct tsl_slab *slab, size_t bytes) {
  if (bytes != 0) tsl_add_relaxed(&slabs_given, 1);
  tsl_report_purged(slab->class, bytes);
}

enum state { DENSE, WAITING, DUE };

// A slab is due when it has been sparse for long enough, and again each time half of its blocks
// that were out then are free, or when blocks were taken from it meanwhile.
static enum state look_at(struct tsl_slab *slab, bool sparse, uint32_t out, uint32_t now_ms) {
  if (!sparse) {
    tsl_store_relaxed(&slab->sparse_ms, 0);
    return DENSE;
  }
  if (!tsl_slab_has_thinned(slab, out, UINT32_MAX)) return DENSE;
  uint32_t since_ms = tsl_load_relaxed(&slab->sparse_ms);
  if (since_ms == 0) since_ms = now_ms == 0 ? 1 : now_ms;
  tsl_store_relaxed(&slab->sparse_ms, since_ms);
  return now_ms - since_ms >= sparse_delay_ms() ? DUE : WAITING;
}

// Moves on to the next slab and returns it; 0 at the end of a round, when `round_waits` is set for
// it.
static tsl_unit sparse_next(const struct tsl_heap *heap) {
  struct tsl_sparse *sparse = &heap->store->sparse;
  tsl_unit unit = sparse->next;
  sparse->next = unit == 0 ? heap->slabs : tsl_span_at(unit)->next;
  if (unit != 0) return unit;
  sparse->round_waits = sparse->slabs_wait;
  sparse->slabs_wait = false;
  return 0;
}

bool tsl_sparse_waits(const struct tsl_heap *heap) {
  const struct tsl_sparse *sparse = &heap->store->sparse;
  return sparse->round_waits || sparse->slabs_wait;
}

bool tsl_sparse_step(struct tsl_heap *heap) {
  tsl_assert(tsl_owner_is_me(heap));
  struct tsl_sparse *sparse = &heap->store->sparse;
  uint64_t now_ms = tsl_os_now_ms();
  if (now_ms < sparse->due_ms) return tsl_sparse_waits(heap);
  sparse->due_ms = now_ms + TSL_TICK_MS;
  unsigned purges = STEP_PURGES;
  for (unsigned looks = STEP_LOOKS; looks != 0 && purges != 0; looks--) {
    tsl_unit unit = sparse_next(heap);
    if (unit == 0) continue;
    struct tsl_slab *slab = tsl_slab_at(unit);
    bool sparse_now = slab->listed && is_sparse(slab, slab->out);
    enum state state = look_at(slab, sparse_now, slab->out, (uint32_t)now_ms);
    sparse->slabs_wait |= state == WAITING;
    if (state != DUE) continue;
    slab_given(slab, tsl_slab_purge(slab, slab->out).bytes);
    purges--;
  }
  return tsl_sparse_waits(heap);
}

// Returns the number of system calls.
static unsigned tend_slab(struct tsl_sparse *tender, struct tsl_slab *slab, uint32_t now_ms) {
  uint32_t free = tsl_slab_free_blocks(slab), out = tsl_sizeclasses[slab->class].capacity - free;
  enum state state = look_at(slab, is_sparse(slab, out), out, now_ms);
  tender->blocks += free;
  tender->slabs_wait |= state == WAITING;
  if (state != DUE) return 0;
  struct tsl_purged purged = tsl_slab_purge_tended(slab, out);
  slab_given(slab, purged.bytes);
  return purged.calls;
}

static enum tsl_sparse_round round_end(struct tsl_sparse *tender) {
  bool changes = tender->blocks != tender->before;
  tender->before = tender->blocks;
  return tender->slabs_wait ? TSL_ROUND_WAITS : changes ? TSL_ROUND_CHANGES : TSL_ROUND_RESTS;
}

enum tsl_sparse_round tsl_sparse_tend(struct tsl_heap *heap) {
  struct tsl_sparse *tender = &heap->store->tender;
  uint32_t now_ms = (uint32_t)tsl_os_now_ms();
  unsigned calls = 0;
  if (tender->next == 0) {
    tender->next = heap->slabs;
    tender->slabs_wait = false;
    tender->blocks = 0;
  }
  for (unsigned looks = TEND_LOOKS; looks != 0 && tender->next != 0 && calls < TEND_CALLS;
       looks--) {
    struct tsl_slab *slab = tsl_slab_at(tender->next);
    tender->next = tsl_span_at(tender->next)->next;
    calls += tend_slab(tender, slab, now_ms);
  }
  return tender->next != 0 ? TSL_ROUND_GOES_ON : round_end(tender);
}
