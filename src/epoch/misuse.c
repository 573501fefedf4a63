#include "epoch/misuse.h"

#include "base/check.h"
#include "base/format.h"
#include "base/options.h"
#include "epoch/epoch.h"
#include "epoch/heap.h"
#include "epoch/label.h"
#include "epoch/mixed.h"
#include "memory/large.h"
#include "memory/record.h"
#include "os/callers.h"

enum { TEXT_BYTES = 400, MOST_CALLS = 8 };

struct text {
  char bytes[TEXT_BYTES];
  size_t length;
};

static void add(struct text *text, const char *format, ...) TSL_PRINTF(2, 3);
static void add(struct text *text, const char *format, ...) {
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

static void add_epoch(struct text *text, uint32_t slot) {
  if (slot > tsl_load_relaxed(&tsl_region.last_epoch)) return;
  const struct tsl_epoch *epoch = tsl_epoch_at(slot);
  if (slot == 0) return add(text, ", default epoch");
  add(text, ", epoch %llu \"%s\"",
      (unsigned long long)tsl_epoch_id(slot, tsl_load_relaxed(&epoch->word)),
      tsl_label_text(epoch->label));
}

static void add_cell(struct text *text, unsigned code, const void *block) {
  uintptr_t granule = (uintptr_t)block & ~(uintptr_t)(TSL_BLOCK_ALIGNMENT - 1);
  unsigned class =
      tsl_granule_class(tsl_load_relaxed(tsl_granule_at(granule)) & (TSL_CELL_FREED - 1u));
  if (class < TSL_CLASSES) add(text, "; %u bytes", tsl_sizeclasses[class].bytes);
  add_epoch(text, tsl_load_relaxed(&tsl_cell_at(tsl_cell_of(block, code / 2))->epoch));
}

// What the map says of a block's place, which may be another one's by now.
static void add_block(struct text *text, const void *block) {
  unsigned code = tsl_entry_code(tsl_map_lookup(block));
  if (tsl_code_is_cell(code)) return add_cell(text, code, block);
  if (code == TSL_CODE_LARGE) {
    add(text, "; %zu bytes", tsl_large_bytes(block));
    add_epoch(text, tsl_load_relaxed(&tsl_span_at(tsl_unit_of(block))->epoch));
  } else if (tsl_map_lookup(block) != 0) {
    add(text, "; %u bytes", tsl_sizeclasses[code / 2].bytes);
    add_epoch(text, tsl_load_relaxed(&tsl_span_at(first_unit(code / 2, block))->epoch));
  }
}

static void add_calls(struct text *text, const void *frame) {
  uintptr_t calls[MOST_CALLS];
  unsigned depth = tsl_callers_walk(frame, calls, MOST_CALLS);
  if (depth != 0) add(text, "; called from");
  for (unsigned i = 0; i < depth; i++) add(text, " %p", (void *)calls[i]);
}

// What is said of each mistake behind what it was.
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

void tsl_misuse_written(const void *block) {
  struct text text = said_of(block, __builtin_frame_address(0));
  tsl_misuse("heap corruption: the free block %p was written to, or freed twice%s", block,
             text.bytes);
}

void tsl_misuse_overflow(const void *block) {
  struct text text = said_of(block, __builtin_frame_address(0));
  tsl_misuse("heap corruption: somebody wrote beyond the block %p%s", block, text.bytes);
}
