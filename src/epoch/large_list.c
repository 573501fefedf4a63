#include "epoch/large_list.h"

#include "base/check.h"
#include "epoch/spare.h"
#include "heap/charge.h"
#include "heap/extent.h"
#include "heap/hold.h"
#include "heap/total.h"
#include "memory/large.h"
#include "os/os.h"
#include "state/epoch.h"
#include "tell/epochs.h"
#include "tell/events.h"
#include "tell/process.h"
#include "tell/sample.h"
#include "upkeep/reports.h"

struct tsl_lock tsl_large_list_lock = {.rank = TSL_RANK_LARGE};
static uint32_t changing TSL_GUARDED_BY(
    tsl_large_list_lock);  // [lock:large] the epoch whose list or counts change; 0: none

static void list_lock(uint32_t slot) TSL_ACQUIRES(tsl_large_list_lock) {
  tsl_lock_acquire(&tsl_large_list_lock);
  changing = slot;
  tsl_compiler_fence();  // pairs: large-fork
}

static void list_unlock(void) TSL_RELEASES(tsl_large_list_lock) {
  tsl_compiler_fence();  // pairs: large-fork
  changing = 0;
  tsl_lock_release(&tsl_large_list_lock);
}

static void list_link(uint32_t slot, tsl_unit unit) {
  struct tsl_epoch *epoch = tsl_epoch_at(slot);
  struct tsl_span *span = tsl_span_at(unit);
  tsl_extent_add(slot, unit);
  list_lock(slot);
  span->prev = 0;
  span->next = epoch->large;
  if (epoch->large != 0) tsl_span_at(epoch->large)->prev = unit;
  tsl_compiler_fence();  // pairs: large-fork
  epoch->large = unit;
  tsl_store_relaxed(&epoch->large_blocks, epoch->large_blocks + 1);
  epoch->large_bytes += span->bytes;
  tsl_report_large(slot);
  list_unlock();
}

static void list_unlink_locked(uint32_t slot, tsl_unit unit) TSL_REQUIRES(tsl_large_list_lock) {
  struct tsl_epoch *epoch = tsl_epoch_at(slot);
  const struct tsl_span *span = tsl_span_at(unit);
  if (span->next != 0) tsl_span_at(span->next)->prev = span->prev;
  *(span->prev != 0 ? &tsl_span_at(span->prev)->next : &epoch->large) = span->next;
  tsl_store_relaxed(&epoch->large_blocks, epoch->large_blocks - 1);
  epoch->large_bytes -= span->bytes;
  tsl_report_large(slot);
}

static void list_unlink(uint32_t slot, tsl_unit unit) {
  list_lock(slot);
  list_unlink_locked(slot, unit);
  list_unlock();
}

// An end: what it touches, and what rank it gives to what it spares (SP1).
struct list_end {
  uint32_t slot;
  uint32_t rank;
  bool again;  // looks at what ends spared before
};

static bool end_has(const struct list_end *end, uint32_t rank) {
  return end->again ? rank > end->rank : rank == 0;
}

// Takes the first block off the list that the end touches and nobody kept, and spares those before
// it; 0 when there is none.
static tsl_unit list_pop(const struct list_end *end) {
  list_lock(end->slot);
  tsl_unit unit = tsl_epoch_at(end->slot)->large;
  for (; unit != 0; unit = tsl_span_at(unit)->next) {
    struct tsl_span *span = tsl_span_at(unit);
    if (!end_has(end, span->rank)) continue;
    if (span->kept == 0) break;
    tsl_store_relaxed(&span->rank, end->rank);
    tsl_store_release(&span->kept, 0);  // pairs: kept
  }
  if (unit != 0) list_unlink_locked(end->slot, unit);
  list_unlock();
  return unit;
}

void tsl_large_list_add(uint32_t slot, void *block) {
  tsl_unit unit = (tsl_unit)tsl_unit_of(block);
  tsl_store_relaxed(&tsl_span_at(unit)->epoch, slot);
  tsl_store_relaxed(&tsl_span_at(unit)->kept, 0);
  tsl_store_relaxed(&tsl_span_at(unit)->rank, 0);
  if (slot != 0) {
    list_link(slot, unit);
    tsl_total_add(slot, (struct tsl_total){1, tsl_span_at(unit)->bytes});
  }
  tsl_add_relaxed(&tsl_counts.large_allocations, 1);
  tsl_report_all_large();
}

// The sample ends before the memory goes back: its row belongs to this block, not to the next one
// there.
static void block_free(void *block) {
  uint32_t sample = tsl_span_at(tsl_unit_of(block))->sample;
  if (tsl_unlikely(sample != 0)) tsl_sample_end(sample, block);
  tsl_large_free(block);
  tsl_report_all_large();
}

// A block that is on no list any more. The epoch drains last: it may retire, and its slot be
// another one's.
static void block_end(uint32_t slot, void *block) {
  size_t bytes = tsl_large_bytes(block);
  block_free(block);
  tsl_epoch_discharge(slot, bytes);
  tsl_epoch_drain(slot, 1);
}

void tsl_large_list_free(void *block) {
  tsl_unit unit = (tsl_unit)tsl_unit_of(block);
  uint32_t slot = tsl_span_at(unit)->epoch, sample = tsl_span_at(unit)->sample;
  if (tsl_unlikely(sample != 0)) tsl_event_freed(tsl_heap_current->home, sample);
  if (slot == 0) return block_free(block);
  list_unlink(slot, unit);
  block_end(slot, block);
}

// The sample moves with its block.
static void *block_move(void *block, size_t bytes) {
  uint32_t sample = tsl_span_at(tsl_unit_of(block))->sample;
  void *moved = tsl_large_move(block, bytes);
  if (moved == NULL || sample == 0) return moved;
  tsl_span_at(tsl_unit_of(moved))->sample = sample;
  tsl_sample_move(sample, moved);
  return moved;
}

// Off the list meanwhile: its neighbours there name it by its unit, which changes.
static void *list_move(uint32_t slot, void *block, size_t bytes) {
  list_unlink(slot, (tsl_unit)tsl_unit_of(block));
  const struct tsl_span *before = tsl_span_at(tsl_unit_of(block));
  uint32_t kept = before->kept, rank = before->rank;
  void *moved = block_move(block, bytes);
  void *now = moved == NULL ? block : moved;
  tsl_span_at(tsl_unit_of(now))->epoch = slot;
  tsl_store_relaxed(&tsl_span_at(tsl_unit_of(now))->kept, kept);
  tsl_store_relaxed(&tsl_span_at(tsl_unit_of(now))->rank, rank);
  list_link(slot, (tsl_unit)tsl_unit_of(now));
  return moved;
}

static bool list_resize(uint32_t slot, void *block, size_t bytes) {
  size_t before = tsl_large_bytes(block);
  if (!tsl_large_resize(block, bytes)) return false;
  list_lock(slot);
  tsl_epoch_at(slot)->large_bytes += tsl_large_bytes(block) - before;
  tsl_report_large(slot);
  list_unlock();
  return true;
}

// In an epoch that has ended a block is resized in place only: it does not move. What a block gains
// is charged before, and what it loses is discharged after: the epoch never has more than it was
// charged for.
static void *resize_in_epoch(uint32_t slot, void *block, size_t bytes, bool may_move) {
  uint64_t word = tsl_load_relaxed(&tsl_epoch_at(slot)->word);
  bool is_open = tsl_epoch_state(word) == TSL_EPOCH_OPEN;
  size_t before = tsl_large_bytes(block), after = tsl_round_up(bytes, TSL_UNIT_BYTES);
  tsl_report_start();
  if (after > before && !tsl_epoch_charge(slot, after - before)) return NULL;
  void *result = list_resize(slot, block, bytes) ? block : NULL;
  if (result == NULL && is_open && may_move) result = list_move(slot, block, bytes);
  if (result == NULL && after > before) tsl_epoch_discharge(slot, after - before);
  if (result != NULL && after < before) tsl_epoch_discharge(slot, before - after);
  if (result != NULL && after > before) tsl_total_add(slot, (struct tsl_total){0, after - before});
  return result;
}

static void *resize_in_default(void *block, size_t bytes, bool may_move) {
  if (tsl_large_resize(block, bytes)) return block;
  if (!may_move) return NULL;
  void *moved = block_move(block, bytes);
  if (moved != NULL) tsl_span_at(tsl_unit_of(moved))->epoch = 0;
  return moved;
}

static void sample_follow(const void *block) {
  const struct tsl_span *span = tsl_span_at(tsl_unit_of(block));
  if (tsl_unlikely(span->sample != 0)) tsl_sample_resize(span->sample, span->bytes);
}

void *tsl_large_list_resize(void *block, size_t bytes, bool may_move) {
  uint32_t slot = tsl_span_at(tsl_unit_of(block))->epoch;
  void *resized = slot == 0 ? resize_in_default(block, bytes, may_move)
                            : resize_in_epoch(slot, block, bytes, may_move);
  if (resized != NULL) sample_follow(resized);
  tsl_report_all_large();
  tsl_report_at_large();
  return resized;
}

// Its bytes are not compared: a block that is being resized has its new ones before its epoch does.
static bool list_valid(const struct tsl_epoch *epoch) TSL_REQUIRES(tsl_large_list_lock) {
  uint32_t blocks = 0;
  tsl_unit before = 0;
  for (tsl_unit unit = epoch->large; unit != 0; before = unit, unit = tsl_span_at(unit)->next) {
    if (tsl_span_at(unit)->prev != before) return false;
    if (!tsl_extent_has(tsl_span_at(unit)->epoch, unit)) return false;  // X1
    blocks++;
  }
  return blocks == epoch->large_blocks;
}

void tsl_large_list_count(uint32_t slot, struct tsl_survivors *survivors) {
  const struct tsl_epoch *epoch = tsl_epoch_at(slot);
  tsl_lock_acquire(&tsl_large_list_lock);
  tsl_invariant(list_valid(epoch));
  survivors->objects += epoch->large_blocks;
  survivors->bytes += epoch->large_bytes;
  survivors->pages += epoch->large_bytes >> TSL_CELL_PAGE_LOG2;
  tsl_lock_release(&tsl_large_list_lock);
}

// The lock is not held while a block goes back: that may take system calls.
static void list_end(struct list_end end) {
  for (tsl_unit unit; (unit = list_pop(&end)) != 0;)
    block_end(end.slot, (void *)tsl_unit_address(unit));
}

void tsl_large_list_release(uint32_t slot) {
  list_end((struct list_end){slot, tsl_spare_rank(slot), false});
}

void tsl_large_list_release_again(uint32_t slot, uint32_t rank) {
  list_end((struct list_end){slot, rank, true});
}

void tsl_large_list_move(uint32_t slot, uint32_t to) {
  struct list_end end = {slot, tsl_spare_rank(slot), false};
  for (tsl_unit unit; (unit = list_pop(&end)) != 0;) {
    tsl_store_relaxed(&tsl_span_at(unit)->epoch, to);
    tsl_add_relaxed(&tsl_epoch_at(to)->undrained, 1);
    list_link(to, unit);
    tsl_epoch_move_charge(slot, to, tsl_span_at(unit)->bytes);
    tsl_epoch_drain(slot, 1);
  }
}

void tsl_large_list_spare(uint32_t slot) {
  list_lock(slot);
  for (tsl_unit unit = tsl_epoch_at(slot)->large; unit != 0; unit = tsl_span_at(unit)->next) {
    struct tsl_span *span = tsl_span_at(unit);
    if (span->kept == 0 || span->rank != 0) continue;
    tsl_store_relaxed(&span->rank, tsl_spare_rank(slot));
    tsl_store_release(&span->kept, 0);  // pairs: kept
  }
  list_unlock();
}

void tsl_large_list_keep(uint32_t slot, const void *block) {
  list_lock(slot);
  tsl_store_relaxed(&tsl_span_at(tsl_unit_of(block))->kept, 1);
  list_unlock();
}

bool tsl_large_list_protect(uint32_t slot, bool is_protected) {
  bool done = true;
  list_lock(slot);
  for (tsl_unit unit = tsl_epoch_at(slot)->large; unit != 0; unit = tsl_span_at(unit)->next) {
    void *block = (void *)tsl_unit_address(unit);
    if (tsl_span_at(unit)->rank != 0) continue;
    done = tsl_os_protect(block, tsl_span_at(unit)->bytes, is_protected) && done;
  }
  list_unlock();
  return done;
}

// The `next` links are whole at every moment; the `prev` links and the counts follow from them.
static void list_mend(struct tsl_epoch *epoch) TSL_REQUIRES(tsl_large_list_lock) {
  uint32_t blocks = 0;
  size_t bytes = 0;
  tsl_unit before = 0;
  for (tsl_unit unit = epoch->large; unit != 0; before = unit, unit = tsl_span_at(unit)->next) {
    tsl_span_at(unit)->prev = before;
    bytes += tsl_span_at(unit)->bytes;
    blocks++;
  }
  tsl_store_relaxed(&epoch->large_blocks, blocks);
  epoch->large_bytes = bytes;
}

void tsl_large_list_after_fork(void) TSL_NOT_ANALYSED {
  if (!tsl_lock_take_over(&tsl_large_list_lock)) return;
  if (changing != 0) list_mend(tsl_epoch_at(changing));  // pairs: large-fork
  changing = 0;
}
