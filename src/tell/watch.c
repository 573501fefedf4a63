#include "tell/watch.h"

#include "base/options.h"
#include "memory/record.h"
#include "os/os.h"
#include "state/bin.h"
#include "state/epoch.h"
#include "state/label.h"
#include "state/owner.h"
#include "tell/rows.h"

enum {
  MOST_DOUBLINGS = 20,
  APART_MS = 100,                   // at least, from one look at a part to the next
  MOST_BYTES = 2 << TSL_UNIT_LOG2,  // of cells that a look goes through: 1,024 words
};

// A label, and its samples that live.
struct watch {
  uint64_t classes;    // [remote] of objects that outlived an epoch: a bit each
  uint32_t live;       // [remote]
  uint32_t doublings;  // [remote] of the distance between them
};

uint64_t tsl_watch_bytes;
uint64_t tsl_watch_hurries_until_ms;
uint32_t tsl_watch_version = 1;
static bool any_watched;  // [remote] a label has classes
static struct watch watches[TSL_MOST_LABELS];
static uint16_t label_of_row[TSL_MOST_SAMPLES];  // [remote] written by whoever owns the row

enum { NOT_WATCHED = UINT16_MAX };  // in place of a label: somebody asked for the sample
_Static_assert((int)TSL_MOST_LABELS < (int)NOT_WATCHED, "a label fits a row's");
_Static_assert(TSL_CLASSES < 64, "a word has a bit for each class, and one for large blocks");

static struct watch *watch_of(const struct tsl_heap *heap) {
  uint32_t slot = heap->epoch;
  return &watches[slot == 0 ? TSL_LABEL_DEFAULT : tsl_load_relaxed(&tsl_epoch_at(slot)->label)];
}

// WA5.
void tsl_watch_renew(void) { tsl_add_relaxed(&tsl_watch_version, 1); }

void tsl_watch_take_in(uint32_t slot) {
  if (tsl_load_relaxed(&tsl_epoch_at(slot)->has_guests) != 0) return;
  tsl_epoch_take_in(slot);
  tsl_watch_renew();
}

// WA1.
void tsl_watch_add(uint32_t label, unsigned class) {
  uint64_t *classes = &watches[label].classes, bit = UINT64_C(1) << class % 64;
  if ((tsl_load_relaxed(classes) & bit) != 0) return;
  tsl_or_relaxed(classes, bit);
  tsl_watch_renew();
  tsl_store_relaxed(&any_watched, true);
}

bool tsl_watch_waits(void) { return tsl_load_relaxed(&any_watched); }

// In the newest cells.
static uint64_t living_in_cells(const struct tsl_heap *heap) {
  uint64_t living = 0;
  size_t left = MOST_BYTES;
  for (tsl_cell_number number = heap->cells; number != 0; number = tsl_cell_at(number)->older) {
    uint32_t entry = tsl_load_relaxed(tsl_map_entry(number / TSL_UNIT_PAGES));
    size_t bytes = tsl_sizeclasses[tsl_code_class(tsl_entry_code(entry))].bytes;
    if (bytes > left) return living;
    left -= bytes;
    living |= tsl_cell_classes(number, bytes);
  }
  return living;
}

static uint64_t living_classes(const struct tsl_heap *heap) {
  uint64_t living = living_in_cells(heap);
  for (unsigned class = 0; class < TSL_CLASSES; class += 1) {
    uint32_t out = tsl_tally_out(&heap->store->tallies[class]);
    if (out != 0 && out > tsl_heap_hot_blocks(heap, class)) living |= UINT64_C(1) << class % 64;
  }
  bool has_large = tsl_load_relaxed(&tsl_epoch_at(heap->epoch)->large_blocks) != 0;
  return living | (uint64_t)has_large << TSL_CLASSES;
}

void tsl_watch_look(struct tsl_part *part) {
  tsl_assert(tsl_owner_is_me(&part->heap));
  if (TSL_SECURE || !tsl_epoch_is_shared(tsl_epoch_at(part->heap.epoch))) return;
  if (tsl_option(watch_bytes) == 0 || part->heap.depth > 1) return;
  uint64_t now_ms = tsl_os_now_ms();
  if (now_ms - part->look_ms < APART_MS) return;
  part->look_ms = now_ms;
  part->living = part->looks == 0 ? UINT64_MAX : part->living;
  part->living &= living_classes(&part->heap);
  if (++part->looks < TSL_WATCH_LOOKS) return;
  part->looks = 0;
  uint32_t label = tsl_load_relaxed(&tsl_epoch_at(part->heap.epoch)->label);
  for (unsigned class = 0; class <= TSL_CLASSES; class += 1)
    if ((part->living >> class % 64 & 1) != 0) tsl_watch_add(label, class);
}

// Pages for samples would bring the limits of an epoch and its ancestors near by chance (WA3).
static bool is_limited(uint32_t slot) {
  for (; slot != 0; slot = tsl_epoch_at(slot)->parent) {
    const struct tsl_epoch *epoch = tsl_epoch_at(slot);
    if (tsl_load_relaxed(&epoch->hard_limit) != SIZE_MAX) return true;
    if (tsl_load_relaxed(&epoch->soft_limit) != SIZE_MAX) return true;
  }
  return false;
}

// What guests leave in their host no close counts before that of the host.
static uint64_t watched_classes(const struct tsl_heap *heap) {
  if (heap->epoch == 0 || is_limited(heap->epoch)) return 0;
  bool is_host = tsl_load_relaxed(&tsl_epoch_at(heap->epoch)->has_guests) != 0;
  return is_host ? UINT64_MAX : tsl_load_relaxed(&watch_of(heap)->classes);
}

uint64_t tsl_watch_mean(const struct tsl_heap *heap) {
  uint64_t bytes = tsl_load_relaxed(&tsl_watch_bytes);
  if (bytes == 0 || watched_classes(heap) == 0) return 0;
  return bytes << tsl_load_relaxed(&watch_of(heap)->doublings);
}

bool tsl_watch_has(const struct tsl_heap *heap, unsigned class) {
  return (watched_classes(heap) >> class % 64 & 1) != 0;
}

// WA4. Some samples may end before the distance is halved again: at the limit it does not change to
// and fro. Threads that come at once may miss a step, and the next one makes it.
static void adapt(struct watch *watch, uint32_t live) {
  uint32_t doublings = tsl_load_relaxed(&watch->doublings);
  bool is_more = live > (doublings + 1) * TSL_WATCH_MANY && doublings < MOST_DOUBLINGS;
  bool is_less = live + TSL_WATCH_MANY / 2 < doublings * TSL_WATCH_MANY;
  if (!is_more && !is_less) return;
  tsl_store_relaxed(&watch->doublings, doublings + is_more - is_less);
  tsl_watch_renew();
}

void tsl_watch_begin(const struct tsl_heap *heap, uint32_t row) {
  struct watch *watch = watch_of(heap);
  bool is_asked = tsl_load_relaxed(&tsl_watch_bytes) == 0;
  if (is_asked) return tsl_store_relaxed(&label_of_row[row], NOT_WATCHED);
  tsl_store_relaxed(&label_of_row[row], (uint16_t)(watch - watches));
  adapt(watch, tsl_add_relaxed(&watch->live, 1) + 1);
}

void tsl_watch_end(uint32_t row) {
  uint32_t label = tsl_load_relaxed(&label_of_row[row]);
  if (label == NOT_WATCHED) return;
  struct watch *watch = &watches[label];
  adapt(watch, tsl_sub_relaxed(&watch->live, 1) - 1);
}

// The labels stay watched.
void tsl_watch_after_fork(void) {
  for (uint32_t label = 0; label < TSL_MOST_LABELS; label++) {
    watches[label].live = 0;
    watches[label].doublings = 0;
  }
}
