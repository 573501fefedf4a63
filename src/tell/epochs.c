#include "tell/epochs.h"

#include <string.h>

#include "state/epoch.h"
#include "state/history.h"
#include "state/label.h"
#include "tell/watch.h"

static uint8_t label_told[TSL_MOST_LABELS];  // [remote]

static void put_history(struct tsl_labels_row *row, uint32_t label) {
  struct tsl_history history = tsl_history_of(label);
  TSL_PUT(row, ended, history.ended);
  TSL_PUT(row, ended_bytes, history.held_bytes);
  TSL_PUT(row, ended_survivor_bytes, history.survivor_bytes);
  TSL_PUT(row, ended_pinned_bytes, history.pinned_bytes);
  TSL_PUT(row, ended_lived_ms, history.lived_ms);
  TSL_PUT(row, released, history.released);
  TSL_PUT(row, shares, history.shares);
}

void tsl_report_label(uint32_t label) {
  if (tsl_load_relaxed(&label_told[label]) != 0) return;
  struct tsl_labels_row *row = TSL_ROW(labels, label);
  if (row == NULL) return;
  tsl_rows_put_text(row->text, tsl_label_text(label), sizeof row->text);
  put_history(row, label);
  tsl_store_relaxed(&label_told[label], 1);
}

static struct tsl_labels_row *label_row(uint32_t slot) {
  if (!tsl_report_is_on()) return NULL;
  uint32_t label = slot == 0 ? TSL_LABEL_DEFAULT : tsl_epoch_at(slot)->label;
  tsl_report_label(label);
  return TSL_ROW(labels, label);
}

void tsl_report_limit_refused(uint32_t slot) {
  struct tsl_labels_row *row = label_row(slot);
  if (row != NULL) tsl_add_relaxed(&row->limits_refused, 1);
}

void tsl_report_memory_refused(uint32_t slot) {
  struct tsl_labels_row *row = label_row(slot);
  if (row != NULL) tsl_add_relaxed(&row->memory_refused, 1);
}

void tsl_report_history(uint32_t label) {
  struct tsl_labels_row *row = tsl_report_is_on() ? TSL_ROW(labels, label) : NULL;
  if (row != NULL && tsl_load_relaxed(&label_told[label]) != 0) put_history(row, label);
}

static size_t limit_of(size_t limit) { return limit == SIZE_MAX ? 0 : limit; }

static bool says_limits(const struct tsl_epochs_row *row, const struct tsl_epoch *epoch) {
  size_t soft = tsl_load_relaxed(&epoch->soft_limit), hard = tsl_load_relaxed(&epoch->hard_limit);
  return tsl_load_relaxed(&row->soft_limit_bytes) == limit_of(soft) &&
         tsl_load_relaxed(&row->hard_limit_bytes) == limit_of(hard);
}

// Several threads may write at once. Each reads the limits again after it wrote, until they are
// what it wrote: so the write that comes last is of the newest limits.
static void put_limits(struct tsl_epochs_row *row, const struct tsl_epoch *epoch) {
  size_t soft, hard;
  do {
    soft = tsl_load_relaxed(&epoch->soft_limit);
    hard = tsl_load_relaxed(&epoch->hard_limit);
    TSL_PUT(row, soft_limit_bytes, limit_of(soft));
    TSL_PUT(row, hard_limit_bytes, limit_of(hard));
    tsl_fence_seq_cst();  // pairs: told-last
  } while (tsl_load_relaxed(&epoch->soft_limit) != soft ||
           tsl_load_relaxed(&epoch->hard_limit) != hard);
}

void tsl_report_limits(uint32_t slot) {
  struct tsl_epochs_row *row = tsl_report_is_on() ? TSL_ROW(epochs, slot) : NULL;
  if (row != NULL) put_limits(row, tsl_epoch_at(slot));
}

static uint32_t row_state(const struct tsl_epoch *epoch, uint64_t word) {
  enum tsl_epoch_state state = tsl_epoch_state(word);
  if (tsl_epoch_is_shared(epoch)) return TSL_EPOCHS_SHARED;
  return state == TSL_EPOCH_RESETTING ? TSL_EPOCH_OPEN : (uint32_t)state;
}

// Writes all fields but those to which other threads add. The id comes last: readers skip a row
// without one.
TSL_ALWAYS_INLINE void put_epoch(struct tsl_epochs_row *row, uint32_t slot) {
  const struct tsl_epoch *epoch = tsl_epoch_at(slot);
  uint64_t word = tsl_load_acquire(&epoch->word);  // pairs: epoch-word
  if (tsl_load_relaxed(&label_told[epoch->label]) == 0) tsl_report_label(epoch->label);
  tsl_mirror_beat(epoch->opened_ms);
  TSL_PUT(row, parent, epoch->parent);
  TSL_PUT(row, label, epoch->label);
  TSL_PUT(row, state, row_state(epoch, word));
  TSL_PUT(row, opened_ms, epoch->opened_ms);
  TSL_PUT(row, closed_ms, tsl_load_relaxed(&epoch->closed_ms));
  if (!says_limits(row, epoch)) put_limits(row, epoch);
  tsl_store_release(&row->id, tsl_epoch_id(slot, word));  // pairs: mirror
}

static struct tsl_epochs_row *epoch_row(uint32_t slot) {
  if (!tsl_report_is_on()) return NULL;
  struct tsl_epoch *epoch = tsl_epoch_at(slot);
  struct tsl_epochs_row *row = TSL_ROW(epochs, slot);
  bool is_new = row != NULL && slot != 0 && tsl_load_relaxed(&epoch->told) == TSL_NOT_TOLD;
  if (!is_new) return row;
  put_epoch(row, slot);
  tsl_store_relaxed(&epoch->told, TSL_TOLD);
  return row;
}

void tsl_report_held_epoch(uint32_t slot) {
  size_t held = tsl_load_relaxed(&tsl_epoch_at(slot)->held_bytes);
  struct tsl_epochs_row *row = held == 0 ? NULL : epoch_row(slot);
  if (row != NULL) TSL_PUT(row, held_bytes, held);
}

void tsl_report_held(uint32_t slot, size_t bytes) {
  struct tsl_epochs_row *row = epoch_row(slot);
  if (row != NULL) TSL_PUT(row, held_bytes, bytes);
}

void tsl_report_large(uint32_t slot) {
  struct tsl_epochs_row *row = epoch_row(slot);
  if (row == NULL) return;
  TSL_PUT(row, large_objects, tsl_epoch_at(slot)->large_blocks);
  TSL_PUT(row, large_bytes, tsl_epoch_at(slot)->large_bytes);
}

void tsl_report_ended(uint32_t slot) {
  const struct tsl_epoch *epoch = tsl_epoch_at(slot);
  struct tsl_epochs_row *row = tsl_report_row(slot);
  if (row == NULL) return;
  tsl_mirror_beat(tsl_load_relaxed(&epoch->closed_ms));
  TSL_PUT(row, held_bytes, tsl_load_relaxed(&epoch->held_bytes));
  TSL_PUT(row, closed_ms, tsl_load_relaxed(&epoch->closed_ms));
  TSL_PUT(row, state, (uint32_t)tsl_epoch_state(tsl_load_relaxed(&epoch->word)));
}

void tsl_report_over(uint32_t slot) {
  struct tsl_epoch *epoch = tsl_epoch_at(slot);
  struct tsl_epochs_row *row = tsl_report_row(slot);
  uint8_t told = epoch->told;
  tsl_store_relaxed(&epoch->told, TSL_NOT_TOLD);
  if (row == NULL) return;
  TSL_PUT(row, id, 0);
  TSL_PUT(row, held_bytes, 0);
  if (told == TSL_HAS_SURVIVORS) tsl_rows_clear(row->survivors, sizeof row->survivors);
}

void tsl_report_survivors(uint32_t slot, const uint32_t *counts) {
  uint32_t any = 0;
  for (unsigned class = 0; class < TSL_CLASSES; class += 1) any |= counts[class];
  struct tsl_epochs_row *row = any == 0 ? NULL : epoch_row(slot);
  if (row == NULL) return;
  for (unsigned class = 0; class < TSL_CLASSES; class += 1) {
    if (counts[class] == 0) continue;
    tsl_store_relaxed(&tsl_epoch_at(slot)->told, TSL_HAS_SURVIVORS);
    tsl_add_relaxed(&row->survivors[class], counts[class]);
    // What guests left says nothing of the label of their host.
    if (tsl_load_relaxed(&tsl_epoch_at(slot)->has_guests) == 0)
      tsl_watch_add(tsl_epoch_at(slot)->label, class);
  }
}

void tsl_report_survivors_ended(uint32_t slot, const uint32_t *counts) {
  struct tsl_epochs_row *row = tsl_report_row(slot);
  for (unsigned class = 0; class < TSL_CLASSES && row != NULL; class += 1)
    if (counts[class] != 0) tsl_sub_relaxed(&row->survivors[class], counts[class]);
}

void tsl_report_forget_epochs(void) {
  memset(label_told, 0, sizeof label_told);
  for (uint32_t slot = 1; slot <= tsl_region.last_epoch; slot++)
    tsl_epoch_at(slot)->told = TSL_NOT_TOLD;
}
