#include "epoch/epoch.h"

#include <errno.h>

#include "base/check.h"
#include "base/probe.h"
#include "base/stack.h"
#include "epoch/heap.h"
#include "epoch/label.h"
#include "epoch/report.h"
#include "memory/growth.h"
#include "os/os.h"
#include "slab/cell.h"

// Slots of retired epochs, the warmest on top.
static struct tsl_stack free_slots;

static uint32_t *slot_link(uint32_t slot) { return &tsl_epoch_at(slot)->next_free; }

void tsl_epoch_init(void) { tsl_epoch_at(0)->heaps = TSL_EPOCH_ENDED; }

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

static void epoch_set(struct tsl_epoch *epoch, const tslab_epoch_options *options) {
  // Who enters by the id of an epoch that was here before may be reading it.
  tsl_store_relaxed(&epoch->first_cell, cell_class(options->first_cell_bytes));
  epoch->largest_cell = largest_cell(options->threads);
  if (epoch->first_cell != TSL_BINS && epoch->largest_cell < epoch->first_cell)
    epoch->largest_cell = epoch->first_cell;
  epoch->purge = (uint8_t)options->purge;
  epoch->level = 0;
  if (options->parent != TSLAB_DEFAULT)
    epoch->level = (uint8_t)(tsl_epoch_at(tsl_epoch_slot(options->parent))->level + 1);
  epoch->soft_limit = options->soft_limit_bytes == 0 ? SIZE_MAX : options->soft_limit_bytes;
  epoch->hard_limit = options->hard_limit_bytes == 0 ? SIZE_MAX : options->hard_limit_bytes;
  epoch->on_limit = options->on_limit;
  epoch->limit_context = options->limit_context;
}

bool tsl_epoch_hold(uint32_t slot) {
  uint32_t *undrained = &tsl_epoch_at(slot)->undrained, seen = tsl_load_relaxed(undrained);
  while (seen != 0) {
    if (tsl_cas_acquire(undrained, &seen, seen + 1)) return true;  // pairs: undrained
  }
  return false;
}

// A child keeps its parent from retiring; false when the parent has ended.
static bool parent_hold(tslab_epoch parent) {
  struct tsl_epoch *epoch = tsl_epoch_at(tsl_epoch_slot(parent));
  if (parent == TSLAB_DEFAULT) return true;
  if (!tsl_epoch_hold(tsl_epoch_slot(parent))) return false;
  tsl_add_acq_rel(&epoch->children, 1);                               // pairs: epoch-children
  if (tsl_load_acquire(&epoch->word) == tsl_epoch_open_word(parent))  // pairs: epoch-word
    return true;
  tsl_sub_relaxed(&epoch->children, 1);
  tsl_epoch_drain(tsl_epoch_slot(parent), 1);
  return false;
}

static void parent_release(uint32_t parent) {
  if (parent == 0) return;
  tsl_sub_relaxed(&tsl_epoch_at(parent)->children, 1);
  tsl_epoch_drain(parent, 1);
}

static uint32_t slot_take(void) {
  struct tsl_heap *home = tsl_heap_current->home;
  if (home != &tsl_heap_empty && home->slot_count != 0)
    return home->store->slots[--home->slot_count];
  uint32_t slot = tsl_stack_pop(&free_slots, slot_link);
  return slot != 0 ? slot : tsl_region_add_epoch();
}

static void slot_give(uint32_t slot) {
  struct tsl_heap *home = tsl_heap_current->home;
  if (home->slot_count == TSL_HEAP_SLOTS) {
    tsl_stack_push(&free_slots, slot, slot_link);
  } else {
    uint8_t inside = home->inside;
    tsl_store_relaxed(&home->inside, 1);
    home->store->slots[home->slot_count++] = slot;
    tsl_store_relaxed(&home->inside, inside);
  }
}

// The parent's release may have looked for children before this one could be seen.
static bool parent_ended(tslab_epoch parent) {
  if (parent == TSLAB_DEFAULT) return false;
  tsl_fence_seq_cst();  // pairs: epoch-children
  const struct tsl_epoch *epoch = tsl_epoch_at(tsl_epoch_slot(parent));
  uint64_t word = tsl_load_acquire(&epoch->word);  // pairs: epoch-word
  return word != tsl_epoch_open_word(parent);
}

// Ends an epoch that nobody knows of, unless the parent's release did.
static int abandon(tslab_epoch id) {
  uint32_t slot = tsl_epoch_slot(id);
  if (tsl_epoch_end(id, TSL_EPOCH_CLOSED) != 0) return ECANCELED;
  tsl_store_relaxed(&tsl_epoch_at(slot)->heaps, TSL_EPOCH_ENDED);
  tsl_epoch_drain(slot, 1);
  return ECANCELED;
}

int tsl_epoch_open(uint32_t label, const tslab_epoch_options *options, tslab_epoch *id) {
  uint32_t slot = slot_take();
  if (slot == 0) return ENOMEM;
  if (!parent_hold(options->parent)) {
    slot_give(slot);
    return ECANCELED;
  }
  struct tsl_epoch *epoch = tsl_epoch_at(slot);
  uint64_t generation = (tsl_load_relaxed(&epoch->word) >> TSL_EPOCH_STATE_BITS) + 1;
  uint64_t word = generation << TSL_EPOCH_STATE_BITS | TSL_EPOCH_OPEN;
  epoch_set(epoch, options);
  tsl_store_relaxed(&epoch->parent, tsl_epoch_slot(options->parent));
  epoch->label = label;
  epoch->deferred = NULL;
  epoch->settled = 0;
  epoch->opened_ms = tsl_os_now_ms();
  tsl_store_relaxed(&epoch->closed_ms, 0);
  tsl_store_relaxed(&epoch->undrained, 1);
  tsl_store_relaxed(&epoch->heaps, 0);
  tsl_store_release(&epoch->word, word);  // pairs: epoch-word
  *id = tsl_epoch_id(slot, word);
  TSL_PROBE2(epoch_open, *id, tsl_label_text(label));
  return parent_ended(options->parent) ? abandon(*id) : 0;
}

struct tsl_epoch *tsl_epoch_find(tslab_epoch id) {
  uint32_t slot = tsl_epoch_slot(id);
  if (slot > tsl_load_relaxed(&tsl_region.last_epoch) || tsl_region.epochs == 0) return NULL;
  uint64_t word = tsl_load_acquire(&tsl_epoch_at(slot)->word);  // pairs: epoch-word
  bool is_live = tsl_epoch_state(word) != TSL_EPOCH_FREE && tsl_epoch_id(slot, word) == id;
  return is_live && (slot == 0 || id != slot) ? tsl_epoch_at(slot) : NULL;
}

int tsl_epoch_check(tslab_epoch id) {
  const struct tsl_epoch *epoch = tsl_epoch_find(id);
  if (epoch == NULL) return ESTALE;
  return tsl_load_relaxed(&epoch->word) == tsl_epoch_open_word(id) ? 0 : ECANCELED;
}

int tsl_epoch_end(tslab_epoch id, enum tsl_epoch_state state) {
  struct tsl_epoch *epoch = tsl_epoch_find(id);
  if (epoch == NULL) return ESTALE;
  uint64_t open = tsl_epoch_open_word(id), word = open;
  if (id == TSLAB_DEFAULT) return EPERM;
  while (!tsl_cas_acq_rel(&epoch->word, &word, open | state)) {  // pairs: epoch-word
    if (word != open) return tsl_epoch_find(id) == NULL ? ESTALE : ECANCELED;
  }
  tsl_store_relaxed(&epoch->closed_ms, tsl_os_now_ms());
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

// A thread that a fork took may have charged the epoch for memory that it never got, and left its
// large blocks half counted.
static void epoch_forget_lost(uint32_t slot) {
  tsl_store_relaxed(&tsl_epoch_at(slot)->large_blocks, 0);
  tsl_epoch_at(slot)->large_bytes = 0;
  size_t lost = tsl_load_relaxed(&tsl_epoch_at(slot)->held_bytes);
  if (lost != 0) tsl_epoch_discharge_chain(slot, lost);
}

static void epoch_retire(uint32_t slot) {
  struct tsl_epoch *epoch = tsl_epoch_at(slot);
  uint32_t parent = epoch->parent;
  tsl_assert(epoch->large == 0);
  epoch_forget_lost(slot);
  tsl_report_over(slot);
  TSL_PROBE1(epoch_drain, tsl_epoch_id(slot, tsl_load_relaxed(&epoch->word)));
  tsl_store_relaxed(&epoch->late, 0);
  epoch->soft_told = 0;
  uint64_t word = tsl_load_relaxed(&epoch->word) | TSL_EPOCH_FREE;
  tsl_store_release(&epoch->word, word);  // pairs: epoch-word
  slot_give(slot);
  parent_release(parent);
}

void tsl_epoch_drain(uint32_t slot, uint32_t count) {
  uint32_t before = tsl_sub_acq_rel(&tsl_epoch_at(slot)->undrained, count);  // pairs: undrained
  if (before == count) epoch_retire(slot);
}

// The heap is in the middle of a refill, where others may come between: what the callback allocates
// lands in the default epoch, unless it says otherwise, and is not told of.
static void tell(uint32_t slot, enum tslab_limit limit, size_t held, size_t bytes) {
  struct tsl_epoch *epoch = tsl_epoch_at(slot);
  struct tsl_heap *current = tsl_heap_current;
  if (epoch->on_limit == NULL || current->home->telling) return;
  struct tsl_heap *home = current->home;
  uint8_t inside = home->inside;
  tsl_heap_current = home;
  tsl_store_relaxed(&home->inside, 0);
  home->telling = true;
  tslab_epoch id = tsl_epoch_id(slot, tsl_load_relaxed(&epoch->word));
  epoch->on_limit(id, limit, held, bytes, epoch->limit_context);
  home->telling = false;
  tsl_store_relaxed(&home->inside, inside);
  tsl_heap_current = current;
}

// Takes bytes off one epoch, not its ancestors.
static void epoch_let_go(uint32_t slot, size_t bytes) {
  struct tsl_epoch *epoch = tsl_epoch_at(slot);
  size_t held = tsl_sub_relaxed(&epoch->held_bytes, bytes) - bytes;
  tsl_report_held(slot, held);
  if (held <= epoch->soft_limit && tsl_load_relaxed(&epoch->soft_told) != 0)
    tsl_store_relaxed(&epoch->soft_told, 0);
}

// True when the epoch itself may hold so much more; it then does.
static bool epoch_take(uint32_t slot, size_t bytes) {
  struct tsl_epoch *epoch = tsl_epoch_at(slot);
  size_t held = tsl_load_relaxed(&epoch->held_bytes);
  do {
    if (tsl_unlikely(held + bytes > epoch->hard_limit)) return false;
  } while (!tsl_cas_relaxed(&epoch->held_bytes, &held, held + bytes));
  tsl_report_held(slot, held + bytes);
  if (tsl_unlikely(held + bytes > epoch->soft_limit) &&
      tsl_exchange_relaxed(&epoch->soft_told, 1) == 0)
    tell(slot, TSLAB_SOFT_LIMIT, held, bytes);
  return true;
}

// The callback may make room, by closing a child for instance: then it is tried once more.
static bool epoch_take_or_tell(uint32_t slot, size_t bytes) {
  if (tsl_likely(epoch_take(slot, bytes))) return true;
  tell(slot, TSLAB_HARD_LIMIT, tsl_load_relaxed(&tsl_epoch_at(slot)->held_bytes), bytes);
  return epoch_take(slot, bytes);
}

bool tsl_epoch_charge_chain(uint32_t slot, size_t bytes) {
  for (uint32_t at = slot; at != 0; at = tsl_epoch_at(at)->parent) {
    if (tsl_likely(epoch_take_or_tell(at, bytes))) continue;
    for (uint32_t undo = slot; undo != at; undo = tsl_epoch_at(undo)->parent)
      epoch_let_go(undo, bytes);
    tsl_add_relaxed(&tsl_counts.limits_refused, 1);
    TSL_PROBE2(limit_hit, tsl_epoch_id(at, tsl_load_relaxed(&tsl_epoch_at(at)->word)), bytes);
    return false;
  }
  return true;
}

void tsl_epoch_discharge_chain(uint32_t slot, size_t bytes) {
  for (; slot != 0; slot = tsl_epoch_at(slot)->parent) epoch_let_go(slot, bytes);
}

size_t tsl_epoch_room(uint32_t slot) {
  size_t room = SIZE_MAX;
  for (; slot != 0; slot = tsl_epoch_at(slot)->parent) {
    const struct tsl_epoch *epoch = tsl_epoch_at(slot);
    size_t held = tsl_load_relaxed(&epoch->held_bytes);
    size_t left = held < epoch->hard_limit ? epoch->hard_limit - held : 0;
    if (left < room) room = left;
  }
  return room;
}
