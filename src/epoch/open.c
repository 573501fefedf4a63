#include "epoch/open.h"

#include <errno.h>

#include "base/probe.h"
#include "heap/charge.h"
#include "heap/extent.h"
#include "heap/hold.h"
#include "heap/slots.h"
#include "heap/total.h"
#include "os/os.h"
#include "tell/epochs.h"
#include "tell/watch.h"

void tsl_epoch_init(void) { tsl_epoch_at(0)->heaps = TSL_EPOCH_ENDED; }

enum { SLOW_BYTES = 1 << 20 };  // of an epoch whose end takes more than some microseconds

static const tslab_epoch_options no_options = {.size = sizeof no_options};

static uint8_t cell_class(size_t bytes) {
  if (TSL_SECURE || bytes > tsl_sizeclasses[TSL_CELL_64K].bytes) return TSL_BINS;
  uint8_t class = TSL_CELL_4K;
  while (tsl_sizeclasses[class].bytes < bytes) class ++;
  return class;
}

// Each thread has cells of its own: many threads get small ones.
static uint8_t largest_cell(unsigned threads) {
  return threads <= 2 ? TSL_CELL_64K : threads <= 8 ? TSL_CELL_16K : TSL_CELL_4K;
}

TSL_ALWAYS_INLINE void epoch_set(struct tsl_epoch *epoch, const tslab_epoch_options *options) {
  // Who enters by the id of an epoch that was here before may be reading it.
  tsl_store_relaxed(&epoch->first_cell, cell_class(options->first_cell_bytes));
  epoch->largest_cell = largest_cell(options->threads);
  if (epoch->first_cell != TSL_BINS && epoch->largest_cell < epoch->first_cell)
    epoch->largest_cell = epoch->first_cell;
  epoch->purge = (uint8_t)options->purge;
  epoch->level = 0;
  if (options->parent != TSLAB_DEFAULT)
    epoch->level = (uint8_t)(tsl_epoch_at(tsl_epoch_slot(options->parent))->level + 1);
  tsl_epoch_begin_limits(epoch, options->soft_limit_bytes, options->hard_limit_bytes);
  epoch->on_limit = options->on_limit;
  epoch->limit_context = options->limit_context;
  tsl_store_relaxed(&epoch->parent, tsl_epoch_slot(options->parent));
}

// Where the blocks of a new epoch lie: `place` is its own slot, or that of the one which it shares.
struct site {
  uint32_t place;
  uint32_t host;
  bool is_shared;
};

static bool has_options(const struct tsl_epoch *epoch) {
  bool has_usual_cells =
      tsl_load_relaxed(&epoch->first_cell) == TSL_CELL_4K && epoch->largest_cell == TSL_CELL_64K;
  bool has_limits = tsl_load_relaxed(&epoch->soft_limit) != SIZE_MAX ||
                    tsl_load_relaxed(&epoch->hard_limit) != SIZE_MAX || epoch->on_limit != NULL;
  return !has_usual_cells || has_limits || epoch->purge != TSLAB_PURGE_DECAY;
}

static void site_set(uint32_t slot, struct site site, uint32_t label) {
  struct tsl_epoch *epoch = tsl_epoch_at(slot);
  bool has_own = site.place == slot && site.host == 0;
  bool is_usual = has_own && !site.is_shared && !has_options(epoch);
  tsl_store_relaxed(&epoch->place, site.place);
  tsl_store_relaxed(&epoch->host, site.host);
  tsl_store_relaxed(&epoch->is_shared, site.is_shared);
  tsl_store_relaxed(&epoch->label, label);  // a message about misuse may be reading it
  tsl_store_relaxed(&epoch->heaps, has_own ? 0 : TSL_EPOCH_ENDED);
  tsl_store_relaxed(&epoch->is_usual, is_usual);
}

// Fills in what changes while an epoch lives, and opens it.
TSL_ALWAYS_INLINE tslab_epoch epoch_begin(uint32_t slot) {
  struct tsl_epoch *epoch = tsl_epoch_at(slot);
  uint64_t generation = (tsl_load_relaxed(&epoch->word) >> TSL_EPOCH_STATE_BITS) + 1;
  uint64_t word = generation << TSL_EPOCH_STATE_BITS | TSL_EPOCH_OPEN;
  epoch->deferred = NULL;
  tsl_store_release(&epoch->user, NULL);  // pairs: epoch-user
  tsl_store_relaxed(&epoch->settled, 0);
  tsl_store_relaxed(&epoch->has_guests, 0);
  tsl_extent_begin(epoch);
  tsl_total_begin(epoch);
  tsl_store_relaxed(&epoch->peak_bytes, 0);
  tsl_store_relaxed(&epoch->opened_ms, tsl_os_now_ms());
  tsl_store_relaxed(&epoch->closed_ms, 0);
  tsl_store_release(&epoch->undrained, 1);  // pairs: undrained
  tsl_invariant(epoch->parent == 0 || tsl_epoch_valid(epoch->parent));
  uint32_t label = epoch->label;          // the record may be another epoch's once this one is open
  tsl_store_release(&epoch->word, word);  // pairs: epoch-word
  tslab_epoch id = tsl_epoch_id(slot, word);
  TSL_PROBE2(epoch_open, id, tsl_label_text(label));
  return id;
}

static int level_check(const struct tsl_epoch *parent) {
  return parent->level + 1 < TSL_EPOCH_MOST_LEVELS ? 0 : ELOOP;
}

// A child keeps its parent from retiring. The parent is held first: an epoch that nobody holds may
// retire, and its slot get another one.
static int parent_hold(tslab_epoch parent) {
  uint32_t slot = tsl_epoch_slot(parent);
  if (parent == TSLAB_DEFAULT) return 0;
  if (!tsl_epoch_hold(slot)) return ESTALE;
  int error = tsl_epoch_check(parent);
  if (error == 0) error = level_check(tsl_epoch_at(slot));
  if (error == 0)
    return tsl_add_acq_rel(&tsl_epoch_at(slot)->children, 1), 0;  // pairs: epoch-children
  tsl_epoch_drain(slot, 1);
  return error;
}

// The parent's release may have looked for children before this one could be seen.
static bool parent_ended(tslab_epoch parent) {
  if (parent == TSLAB_DEFAULT) return false;
  tsl_fence_seq_cst();  // pairs: epoch-children
  const struct tsl_epoch *epoch = tsl_epoch_at(tsl_epoch_slot(parent));
  uint64_t word = tsl_load_acquire(&epoch->word);  // pairs: epoch-word
  return word != tsl_epoch_open_word(parent);
}

// Ends an epoch whose id nobody has got yet, unless the parent's release has ended it.
static int abandon(tslab_epoch id) {
  uint32_t slot = tsl_epoch_slot(id);
  if (tsl_epoch_end(id, TSL_EPOCH_CLOSED) != 0) return ECANCELED;
  tsl_store_relaxed(&tsl_epoch_at(slot)->heaps, TSL_EPOCH_ENDED);
  tsl_epoch_drain(slot, 1);
  return ECANCELED;
}

enum epoch_kind { KIND_OWN, KIND_SHARED, KIND_GUEST };

// Of a parent that is held.
static uint32_t take_in(tslab_epoch parent) {
  uint32_t host = tsl_epoch_host_below(tsl_epoch_slot(parent));
  if (host != 0) tsl_watch_take_in(host);
  return host;
}

static int open_kind(enum epoch_kind kind, uint32_t label, const tslab_epoch_options *options,
                     tslab_epoch *id) {
  uint32_t slot = tsl_slot_take();
  if (slot == 0) return ENOMEM;
  int error = parent_hold(options->parent);
  if (error != 0) return tsl_slot_give(slot), error;
  uint32_t host = kind == KIND_GUEST ? take_in(options->parent) : 0;
  epoch_set(tsl_epoch_at(slot), options);
  site_set(slot, (struct site){slot, host, kind == KIND_SHARED}, label);
  *id = epoch_begin(slot);
  return parent_ended(options->parent) ? abandon(*id) : 0;
}

// Without options: with memory of its own where `place` is the slot itself, otherwise a name.
TSL_NOINLINE static void record_set(uint32_t slot, uint32_t label, uint32_t place) {
  epoch_set(tsl_epoch_at(slot), &no_options);
  site_set(slot, (struct site){place, 0, false}, label);
}

static bool is_plain(const struct tsl_epoch *epoch) {
  return tsl_load_relaxed(&epoch->is_usual) != 0 && tsl_load_relaxed(&epoch->parent) == 0;
}

// Most records come again as plain as they were.
static int open_plain(uint32_t label, tslab_epoch *id) {
  uint32_t slot = tsl_slot_take();
  if (tsl_unlikely(slot == 0)) return ENOMEM;
  struct tsl_epoch *epoch = tsl_epoch_at(slot);
  if (tsl_unlikely(!is_plain(epoch))) record_set(slot, label, slot);
  tsl_store_relaxed(&epoch->label, label);
  tsl_store_relaxed(&epoch->heaps, 0);
  *id = epoch_begin(slot);
  return 0;
}

int tsl_epoch_open(uint32_t label, const tslab_epoch_options *options, tslab_epoch *id) {
  return options == NULL ? open_plain(label, id) : open_kind(KIND_OWN, label, options, id);
}

int tsl_epoch_open_guest(uint32_t label, const tslab_epoch_options *options, tslab_epoch *id) {
  return open_kind(KIND_GUEST, label, options, id);
}

int tsl_epoch_open_shared(uint32_t label, tslab_epoch *id) {
  return open_kind(KIND_SHARED, label, &no_options, id);
}

// Most records come again as names of the place that they had: a place has one label (PL2), and
// names have no option but `purge`.
int tsl_epoch_open_sharing(uint32_t label, uint32_t place, enum tslab_purge purge,
                           tslab_epoch *id) {
  uint32_t slot = tsl_slot_take();
  if (tsl_unlikely(slot == 0)) return ENOMEM;
  if (tsl_load_relaxed(&tsl_epoch_at(slot)->place) != place) record_set(slot, label, place);
  tsl_epoch_at(slot)->purge = (uint8_t)purge;
  *id = epoch_begin(slot);
  return 0;
}

TSL_ALWAYS_INLINE bool has_record(uint32_t slot) {
  return slot <= tsl_load_relaxed(&tsl_region.last_epoch) && tsl_region.epochs != 0;
}

// The word of the epoch's record; TSL_EPOCH_FREE when the epoch is over. Read once: after that the
// slot may get another one.
TSL_ALWAYS_INLINE uint64_t word_of(tslab_epoch id) {
  uint32_t slot = tsl_epoch_slot(id);
  if (!has_record(slot) || (slot != 0 && id == slot)) return TSL_EPOCH_FREE;
  uint64_t word = tsl_load_acquire(&tsl_epoch_at(slot)->word);  // pairs: epoch-word
  return tsl_epoch_id(slot, word) == id ? word : TSL_EPOCH_FREE;
}

struct tsl_epoch *tsl_epoch_find(tslab_epoch id) {
  bool is_over = tsl_epoch_state(word_of(id)) == TSL_EPOCH_FREE;
  return is_over ? NULL : tsl_epoch_at(tsl_epoch_slot(id));
}

int tsl_epoch_check(tslab_epoch id) {
  enum tsl_epoch_state state = tsl_epoch_state(word_of(id));
  if (tsl_likely(state == TSL_EPOCH_OPEN)) return 0;
  if (state == TSL_EPOCH_FREE) return ESTALE;
  return state == TSL_EPOCH_RESETTING ? EBUSY : ECANCELED;
}

// PL2. The slot of an epoch that is over may be that of a shared one by now.
int tsl_epoch_refuse(tslab_epoch id) {
  int error = tsl_epoch_check(id);
  return error == 0 ? EPERM : error;
}

// Reads no word: the id of an epoch that has ended fails later, as the word is changed. A shared
// epoch never gives its slot back, so who has an id of that slot sees what it was when the id was
// made.
static bool may_end(tslab_epoch id) {
  uint32_t slot = tsl_epoch_slot(id);
  return has_record(slot) && id != slot && !tsl_epoch_is_shared(tsl_epoch_at(slot));
}

// Of most epochs nobody would see the row between their end and the moment when they are over.
static bool ends_slowly(const struct tsl_epoch *epoch) {
  bool has_deferred = tsl_load_relaxed(&epoch->deferred) != NULL;
  return has_deferred || tsl_load_relaxed(&epoch->held_bytes) >= SLOW_BYTES ||
         tsl_load_relaxed(&epoch->children) != 0 || tsl_epochs_wait;
}

// E1: who moves the word away from open ends the epoch.
int tsl_epoch_end(tslab_epoch id, enum tsl_epoch_state state) {
  if (tsl_unlikely(!may_end(id))) return tsl_epoch_refuse(id);
  struct tsl_epoch *epoch = tsl_epoch_at(tsl_epoch_slot(id));
  uint64_t open = tsl_epoch_open_word(id), word = open;
  while (!tsl_cas_acq_rel(&epoch->word, &word, open | state)) {  // pairs: epoch-word
    if (word == open) continue;
    int error = tsl_epoch_check(id);
    return error == 0 ? EBUSY : error;
  }
  tsl_store_relaxed(&epoch->closed_ms, tsl_os_now_ms());
  if (tsl_report_has(tsl_epoch_slot(id)) && ends_slowly(epoch))
    tsl_report_ended(tsl_epoch_slot(id));
  TSL_PROBE2(epoch_end, id, (uint32_t)state);
  return 0;
}

bool tsl_epoch_claim_release(tslab_epoch id) {
  uint32_t slot = tsl_epoch_slot(id);
  struct tsl_epoch *epoch = tsl_epoch_at(slot);
  if (!tsl_epoch_hold(slot)) return false;
  uint64_t closed = tsl_epoch_open_word(id) | TSL_EPOCH_CLOSED, word = closed;
  uint64_t released = tsl_epoch_open_word(id) | TSL_EPOCH_RELEASED;
  while (!tsl_cas_acq_rel(&epoch->word, &word, released)) {  // pairs: epoch-word
    if (word == closed) continue;
    tsl_epoch_drain(slot, 1);
    return false;
  }
  return true;
}
