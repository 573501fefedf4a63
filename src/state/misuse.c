#include "state/misuse.h"

#include "base/format.h"
#include "base/options.h"
#include "base/warn.h"
#include "memory/large.h"
#include "os/callers.h"
#include "os/os.h"
#include "state/cut_back.h"
#include "state/epoch.h"
#include "state/heap.h"
#include "state/label.h"

enum { REPORT_BYTES = 400, MOST_CALLS = 8 };

struct text {
  char bytes[REPORT_BYTES];
  size_t length;
};

static void text_add(struct text *text, const char *format, ...) TSL_PRINTF(2, 3);
static void text_add(struct text *text, const char *format, ...) {
  va_list list;
  va_start(list, format);
  size_t left = sizeof text->bytes - text->length;
  text->length += tsl_format_list(text->bytes + text->length, left, format, list);
  va_end(list);
}

static tsl_unit first_unit(unsigned class, const void *block) {
  uintptr_t offset = (uintptr_t)block & tsl_sizeclasses[class].slab_mask;
  return (tsl_unit)tsl_unit_of((const void *)((uintptr_t)block - offset));
}

static void text_add_epoch(struct text *text, uint32_t slot) {
  if (slot > tsl_load_relaxed(&tsl_region.last_epoch)) return;
  const struct tsl_epoch *epoch = tsl_epoch_at(slot);
  if (slot == 0) return text_add(text, ", default epoch");
  text_add(text, ", epoch %llu \"%s\"",
           (unsigned long long)tsl_epoch_id(slot, tsl_load_relaxed(&epoch->word)),
           tsl_label_text(epoch->label));
}

static unsigned class_in_cell(tsl_cell_number number, const void *block) {
  uintptr_t granule = (uintptr_t)block & ~(uintptr_t)(TSL_BLOCK_ALIGNMENT - 1);
  unsigned byte = tsl_load_relaxed(tsl_granule_at(granule));
  uint32_t owner = tsl_load_acquire(&tsl_cell_at(number)->heap);  // pairs: cell-sealed
  if (byte == 0 && owner != 0) byte = tsl_cut_back_byte(tsl_heap_at(owner), granule);
  return tsl_granule_class(byte & (TSL_CELL_FREED - 1u));
}

// The epoch that the map gives for an address that it knows.
static uint32_t slot_of(const void *block) {
  unsigned code = tsl_entry_code(tsl_map_lookup(block)), class = tsl_code_class(code);
  if (tsl_code_is_cell(code))
    return tsl_load_relaxed(&tsl_cell_at(tsl_cell_of(block, class))->epoch);
  size_t unit = code == TSL_CODE_LARGE ? tsl_unit_of(block) : first_unit(class, block);
  return tsl_load_relaxed(&tsl_span_at(unit)->epoch);
}

// Adds the size and the epoch that the map gives for the address. Another block may lie there by
// now.
static void add_block(struct text *text, const void *block) {
  unsigned code = tsl_entry_code(tsl_map_lookup(block)), class = tsl_code_class(code);
  if (tsl_map_lookup(block) == 0) return;
  if (tsl_code_is_cell(code)) class = class_in_cell(tsl_cell_of(block, class), block);
  if (code == TSL_CODE_LARGE) {
    text_add(text, "; %zu bytes", tsl_large_bytes(block));
  } else if (class < TSL_CLASSES) {
    text_add(text, "; %u bytes", tsl_sizeclasses[class].bytes);
  }
  text_add_epoch(text, slot_of(block));
}

static void add_calls(struct text *text, const void *frame) {
  uintptr_t calls[MOST_CALLS];
  unsigned depth = tsl_callers_walk(frame, calls, MOST_CALLS);
  if (depth != 0) text_add(text, "; called from");
  for (unsigned i = 0; i < depth; i++) text_add(text, " %p", (void *)calls[i]);
}

// The end that all messages share: size, epoch and callers.
static struct text said_of(const void *block, const void *frame) {
  struct text text = {.length = 0};
  text.bytes[0] = '\0';
  if (tsl_option(on_error) == TSL_ON_ERROR_IGNORE) return text;
  add_block(&text, block);
  add_calls(&text, frame);
  return text;
}

void tsl_misuse_twice(const void *block) {
  struct text text = said_of(block, __builtin_frame_address(0));
  tsl_misuse("free(%p): the block is free already%s", block, text.bytes);
}

void tsl_misuse_both(const void *block) {
  struct text text = said_of(block, __builtin_frame_address(0));
  tsl_misuse("free(%p): the block was freed by two threads%s", block, text.bytes);
}

void tsl_misuse_interior(const void *block) {
  struct text text = said_of(block, __builtin_frame_address(0));
  tsl_misuse("free(%p): not the beginning of a block%s", block, text.bytes);
}

void tsl_misuse_foreign(const char *call, const void *block) {
  struct text text = said_of(block, __builtin_frame_address(0));
  tsl_misuse("%s(%p): not a block of this allocator%s", call, block, text.bytes);
}

void tsl_misuse_size(const void *block, size_t said, size_t usable) {
  struct text text = said_of(block, __builtin_frame_address(0));
  tsl_misuse("free(%p): its size is given as %zu, but it has %zu bytes%s", block, said, usable,
             text.bytes);
}

static unsigned long long ended_ms_ago(const void *block) {
  return tsl_os_now_ms() - tsl_epoch_at(slot_of(block))->closed_ms;
}

// The callers are those of a signal handler.
void tsl_misuse_late(const void *address, const void *block, const void *code) {
  struct text text = said_of(block, NULL);
  tsl_misuse(
      "use of %p by the code at %p: the block %p ended as its epoch was released or reset %llu ms "
      "ago%s",
      address, code, block, ended_ms_ago(block), text.bytes);
}

void tsl_misuse_late_free(const void *block) {
  struct text text = said_of(block, __builtin_frame_address(0));
  tsl_misuse("free(%p): the block ended as its epoch was released or reset %llu ms ago%s", block,
             ended_ms_ago(block), text.bytes);
}

void tsl_misuse_written(const void *block) {
  struct text text = said_of(block, __builtin_frame_address(0));
  tsl_misuse("heap corruption: the free block %p was written to, or freed twice%s", block,
             text.bytes);
}

void tsl_misuse_overflow(const void *block) {
  struct text text = said_of(block, __builtin_frame_address(0));
  tsl_misuse("heap corruption: somebody wrote beyond the block %p%s", block, text.bytes);
}

// The epoch may be over, and its slot be another one's in a moment.
static uint32_t label_of(uint32_t slot) { return tsl_load_relaxed(&tsl_epoch_at(slot)->label); }

// The epoch may be over, and its slot another one's.
static void add_named(struct text *text, tslab_epoch id) {
  uint32_t slot = tsl_epoch_slot(id);
  bool is_known = tsl_region.epochs != 0 && slot <= tsl_load_relaxed(&tsl_region.last_epoch);
  uint64_t word = is_known ? tsl_load_relaxed(&tsl_epoch_at(slot)->word) : 0;
  if (id == TSLAB_DEFAULT) return text_add(text, "the default epoch");
  text_add(text, "epoch %llu", (unsigned long long)id);
  if (!is_known || tsl_epoch_id(slot, word) != id || tsl_epoch_state(word) == TSL_EPOCH_FREE)
    return text_add(text, " (over)");
  text_add(text, " \"%s\"", tsl_label_text(label_of(slot)));
}

// Which of the thread's mistakes it was. The struct of a scope that was never entered may hold
// anything.
static const char *scope_mistake(const struct tslab_scope *scope) {
  uintptr_t heap = (uintptr_t)scope->heap, offset = heap - tsl_region.heaps;
  uint32_t last = tsl_load_relaxed(&tsl_region.last_heap);
  bool is_heap = offset / TSL_HEAP_BYTES <= last && offset % TSL_HEAP_BYTES == 0;
  if (scope->heap == NULL || !is_heap) return "was left already, or never entered";
  if (((const struct tsl_heap *)heap)->home != tsl_heap_current->home)
    return "was entered by another thread";
  return "is not the innermost one";
}

void tsl_misuse_scope(const struct tslab_scope *scope) {
  if (tsl_option(on_error) == TSL_ON_ERROR_IGNORE) return;
  struct text text = {.length = 0};
  text_add(&text, "tslab_scope_leave(%p): the scope of ", (const void *)scope);
  add_named(&text, scope->epoch);
  text_add(&text, " %s; this thread is in ", scope_mistake(scope));
  add_named(&text, tsl_heap_current->name);
  add_calls(&text, __builtin_frame_address(0));
  tsl_misuse("%s", text.bytes);
}

// What is said once for each label.
enum { FORGOTTEN = 1, INSIDE = 2 };
static uint8_t said_once[TSL_MOST_LABELS];  // [remote]

static bool said_first(uint32_t label, uint8_t kind) {
  if (tsl_option(on_error) == TSL_ON_ERROR_IGNORE) return false;
  return (tsl_or_relaxed(&said_once[label], kind) & kind) == 0;
}

void tsl_misuse_forgotten(const struct tsl_heap *heap, tslab_epoch current) {
  uint32_t label = heap->epoch == 0 ? TSL_LABEL_DEFAULT : tsl_epoch_at(heap->epoch)->label;
  struct text text = {.length = 0};
  if (!said_first(label, FORGOTTEN)) return;
  text_add(&text, "a thread ended in ");
  add_named(&text, current);
  text_add(&text, " without leaving %u %s of ", heap->depth, heap->depth == 1 ? "scope" : "scopes");
  add_named(&text, heap->name);
  text_add(&text, ": each tslab_scope_enter needs a tslab_scope_leave by the same thread");
  tsl_warn("%s", text.bytes);
}

// Whether the slot is the ancestor's, or one of its descendants'. The epochs may end meanwhile.
static bool is_below(uint32_t slot, uint32_t ancestor) {
  for (unsigned level = 0; slot != ancestor; level++) {
    if (slot == 0 || level == TSL_EPOCH_MOST_LEVELS) return false;
    slot = tsl_load_relaxed(&tsl_epoch_at(slot)->parent);
  }
  return true;
}

// The record of an epoch that is not over; NULL for the default one, and for any other id.
static const struct tsl_epoch *known_epoch(tslab_epoch id) {
  uint32_t slot = tsl_epoch_slot(id);
  if (slot == 0 || slot > tsl_load_relaxed(&tsl_region.last_epoch)) return NULL;
  const struct tsl_epoch *epoch = tsl_epoch_at(slot);
  uint64_t word = tsl_load_relaxed(&epoch->word);
  bool is_known = tsl_epoch_id(slot, word) == id && tsl_epoch_state(word) != TSL_EPOCH_FREE;
  return is_known ? epoch : NULL;
}

void tsl_misuse_inside(const char *call, tslab_epoch id) {
  tslab_epoch current = tsl_heap_current->name;
  const struct tsl_epoch *ends = known_epoch(id), *here = known_epoch(current);
  struct text text = {.length = 0};
  if (ends == NULL || here == NULL || current == id) return;
  if (!is_below(tsl_epoch_slot(current), tsl_epoch_slot(id))) return;
  if (tsl_load_relaxed(&ends->word) != tsl_epoch_open_word(id)) return;
  if (!said_first(ends->label, INSIDE)) return;
  text_add(&text, "%s of ", call);
  add_named(&text, id);
  text_add(&text, " by a thread that is in its descendant, ");
  add_named(&text, current);
  text_add(&text, ": leave and end that one first");
  add_calls(&text, __builtin_frame_address(0));
  tsl_warn("%s", text.bytes);
}

static uint32_t open_count[TSL_MOST_LABELS];  // [who got the slot TSL_MANY_EPOCHS]

static bool slot_is_open(uint32_t slot) {
  uint64_t word = tsl_load_relaxed(&tsl_epoch_at(slot)->word);
  return tsl_epoch_state(word) == TSL_EPOCH_OPEN;
}

// The label of which most epochs are open. Adds up all that are.
static uint32_t most_open(uint32_t *sum) {
  uint32_t most = 0;
  *sum = 0;
  for (uint32_t slot = 1; slot < TSL_MANY_EPOCHS; slot++) {
    if (!slot_is_open(slot)) continue;
    uint32_t label = tsl_load_relaxed(&tsl_epoch_at(slot)->label);
    ++*sum;
    if (++open_count[label] > open_count[most]) most = label;
  }
  return most;
}

static tslab_epoch first_open(uint32_t label) {
  uint32_t slot = 1;
  while (slot + 1 < TSL_MANY_EPOCHS && !(slot_is_open(slot) && label_of(slot) == label)) slot++;
  return tsl_epoch_id(slot, tsl_load_relaxed(&tsl_epoch_at(slot)->word));
}

void tsl_misuse_many(void) {
  uint32_t sum, label = most_open(&sum);
  struct text text = {.length = 0};
  if (tsl_option(on_error) == TSL_ON_ERROR_IGNORE || sum < TSL_MANY_EPOCHS / 2) return;
  tslab_epoch first = first_open(label);
  uint64_t opened_ms = tsl_epoch_at(tsl_epoch_slot(first))->opened_ms;
  text_add(&text, "%u epochs are open, %u of them \"%s\"; the first of these is ", sum,
           open_count[label], tsl_label_text(label));
  add_named(&text, first);
  text_add(&text, ", opened %llu ms ago: close or release each",
           (unsigned long long)(tsl_os_now_ms() - opened_ms));
  add_calls(&text, __builtin_frame_address(0));
  tsl_warn("%s", text.bytes);
}
