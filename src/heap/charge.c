#include "heap/charge.h"

#include "base/check.h"
#include "base/probe.h"
#include "state/change.h"
#include "state/epoch.h"
#include "state/heap.h"
#include "state/outside.h"
#include "tell/epochs.h"
#include "tell/watch.h"

// Calls the epoch's callback. The thread is in the middle of a refill, so the callback runs in the
// default epoch, with the change paused (C3), and is not called for limits that it exceeds itself.
static void limit_tell(uint32_t slot, enum tslab_limit limit, size_t held, size_t bytes) {
  struct tsl_epoch *epoch = tsl_epoch_at(slot);
  struct tsl_home *home = tsl_heap_current->home;
  if (epoch->on_limit == NULL || home->telling) return;
  tsl_assert(home != &tsl_home_empty);
  struct tsl_change change = tsl_change_pause(home);
  struct tsl_outside outside = tsl_outside_begin();
  home->telling = true;
  tslab_epoch id = tsl_epoch_id(slot, tsl_load_relaxed(&epoch->word));
  epoch->on_limit(id, limit, held, bytes, epoch->limit_context);
  home->telling = false;
  tsl_change_end(change);
  tsl_outside_end(outside);
}

void tsl_epoch_begin_limits(struct tsl_epoch *epoch, size_t soft_bytes, size_t hard_bytes) {
  tsl_store_relaxed(&epoch->soft_limit, soft_bytes == 0 ? SIZE_MAX : soft_bytes);
  tsl_store_relaxed(&epoch->hard_limit, hard_bytes == 0 ? SIZE_MAX : hard_bytes);
}

void tsl_epoch_set_limits(uint32_t slot, size_t soft_bytes, size_t hard_bytes) {
  struct tsl_epoch *epoch = tsl_epoch_at(slot);
  tsl_store_relaxed(&epoch->is_usual, 0);
  tsl_epoch_begin_limits(epoch, soft_bytes, hard_bytes);
  tsl_store_relaxed(&epoch->soft_told, 0);
  tsl_report_limits(slot);
  tsl_watch_renew();
}

// Takes bytes off one epoch, not its ancestors.
static void epoch_let_go(uint32_t slot, size_t bytes) {
  struct tsl_epoch *epoch = tsl_epoch_at(slot);
  size_t held = tsl_sub_relaxed(&epoch->held_bytes, bytes) - bytes;
  tsl_assert(held + bytes >= bytes);
  tsl_report_held(slot, held);
  if (held <= tsl_load_relaxed(&epoch->soft_limit) && tsl_load_relaxed(&epoch->soft_told) != 0)
    tsl_store_relaxed(&epoch->soft_told, 0);
}

// E3: charges the epoch itself, not its ancestors. False when its hard limit refuses.
static bool epoch_take(uint32_t slot, size_t bytes) {
  struct tsl_epoch *epoch = tsl_epoch_at(slot);
  size_t held = tsl_load_relaxed(&epoch->held_bytes);
  do {
    if (tsl_unlikely(held + bytes > tsl_load_relaxed(&epoch->hard_limit))) return false;  // E3
  } while (!tsl_cas_relaxed(&epoch->held_bytes, &held, held + bytes));
  tsl_report_held(slot, held + bytes);
  if (tsl_unlikely(held + bytes > tsl_load_relaxed(&epoch->soft_limit)) &&
      tsl_exchange_relaxed(&epoch->soft_told, 1) == 0)
    limit_tell(slot, TSLAB_SOFT_LIMIT, held, bytes);
  return true;
}

// Only of charges that no limit refused.
static void epoch_note_peak(uint32_t slot) {
  struct tsl_epoch *epoch = tsl_epoch_at(slot);
  size_t held = tsl_load_relaxed(&epoch->held_bytes), peak = tsl_load_relaxed(&epoch->peak_bytes);
  while (held > peak && !tsl_cas_relaxed(&epoch->peak_bytes, &peak, held)) continue;
}

void tsl_epoch_charge_freely(uint32_t slot, size_t bytes) {
  for (; slot != 0; slot = tsl_epoch_at(slot)->parent) {
    size_t held = tsl_add_relaxed(&tsl_epoch_at(slot)->held_bytes, bytes) + bytes;
    tsl_report_held(slot, held);
    epoch_note_peak(slot);
  }
}

void tsl_epoch_discharge_freely(uint32_t slot, size_t bytes) {
  struct tsl_epoch *epoch = tsl_epoch_at(slot);
  tsl_assert(tsl_load_relaxed(&epoch->held_bytes) >= bytes);
  tsl_sub_relaxed(&epoch->held_bytes, bytes);
  if (epoch->parent != 0) tsl_epoch_discharge_chain(epoch->parent, bytes);
}

// The callback may make room, by closing a child for instance: so a refused charge is tried once
// more.
static bool epoch_take_or_tell(uint32_t slot, size_t bytes) {
  if (tsl_likely(epoch_take(slot, bytes))) return true;
  limit_tell(slot, TSLAB_HARD_LIMIT, tsl_load_relaxed(&tsl_epoch_at(slot)->held_bytes), bytes);
  return epoch_take(slot, bytes);
}

bool tsl_epoch_charge_chain(uint32_t slot, size_t bytes) {
  for (uint32_t at = slot; at != 0; at = tsl_epoch_at(at)->parent) {
    if (tsl_likely(epoch_take_or_tell(at, bytes))) continue;
    for (uint32_t undo = slot; undo != at; undo = tsl_epoch_at(undo)->parent)
      epoch_let_go(undo, bytes);
    tsl_add_relaxed(&tsl_counts.limits_refused, 1);
    tsl_report_limit_refused(at);
    TSL_PROBE2(limit_hit, tsl_epoch_id(at, tsl_load_relaxed(&tsl_epoch_at(at)->word)), bytes);
    return false;
  }
  for (uint32_t at = slot; at != 0; at = tsl_epoch_at(at)->parent) epoch_note_peak(at);
  return true;
}

TSL_NOINLINE void tsl_epoch_discharge_chain(uint32_t slot, size_t bytes) {
  for (; slot != 0; slot = tsl_epoch_at(slot)->parent) epoch_let_go(slot, bytes);
}

void tsl_epoch_move_charge(uint32_t from, uint32_t to, size_t bytes) {
  tsl_assert(tsl_epoch_at(from)->parent == tsl_epoch_at(to)->parent);
  size_t held = tsl_add_relaxed(&tsl_epoch_at(to)->held_bytes, bytes) + bytes;
  tsl_report_held(to, held);
  epoch_note_peak(to);
  epoch_let_go(from, bytes);
}

static bool has_limits(const struct tsl_epoch *epoch) {
  return tsl_load_relaxed(&epoch->soft_limit) != SIZE_MAX ||
         tsl_load_relaxed(&epoch->hard_limit) != SIZE_MAX;
}

bool tsl_epoch_is_charged_freely(uint32_t slot) {
  while (slot != 0 && !has_limits(tsl_epoch_at(slot))) slot = tsl_epoch_at(slot)->parent;
  return slot == 0;
}

bool tsl_epoch_is_limited(uint32_t slot) {
  while (slot != 0 && tsl_load_relaxed(&tsl_epoch_at(slot)->hard_limit) == SIZE_MAX)
    slot = tsl_epoch_at(slot)->parent;
  return slot != 0;
}

size_t tsl_epoch_room(uint32_t slot) {
  size_t room = SIZE_MAX;
  for (; slot != 0; slot = tsl_epoch_at(slot)->parent) {
    const struct tsl_epoch *epoch = tsl_epoch_at(slot);
    size_t held = tsl_load_relaxed(&epoch->held_bytes);
    size_t limit = tsl_load_relaxed(&epoch->hard_limit);
    size_t left = held < limit ? limit - held : 0;
    if (left < room) room = left;
  }
  return room;
}
