#include "fill.h"

#include "clock.h"
#include "memory.h"

#include <stdlib.h>

static void fill_pin(fill *f) {
  if (f->pin == NULL) {
    f->pin = malloc(f->bytes);
    memory_demand(f->pin);
    memory_touch(f->pin, f->bytes);
  }
}

void fill_run_singles(fill *f) {
  for (uint64_t i = 0; i < f->count; i++) {
    uint64_t start = ticks_begin();
    char *block = malloc(f->bytes);
    histogram_add(&f->mallocs->singles, ticks_end() - start);
    memory_demand(block);
    memory_touch(block, f->bytes);
    f->blocks[i] = block;
  }
  fill_pin(f);
  for (uint64_t i = 0; i < f->count; i++) {
    uint64_t start = ticks_begin();
    free(f->blocks[i]);
    histogram_add(&f->frees->singles, ticks_end() - start);
  }
}

static void batch_add(probe *p, uint64_t count, uint64_t ticks) {
  if (count == PROBE_BATCH) {
    histogram_add(&p->batches, ticks);
  }
}

static void batch_malloc(const fill *f, char **blocks, uint64_t count) {
  uint64_t start = ticks_begin();
  for (uint64_t i = 0; i < count; i++) {
    blocks[i] = malloc(f->bytes);
  }
  batch_add(f->mallocs, count, ticks_end() - start);
  for (uint64_t i = 0; i < count; i++) {
    memory_demand(blocks[i]);
    memory_touch(blocks[i], f->bytes);
  }
}

static void batch_free(const fill *f, char **blocks, uint64_t count) {
  uint64_t start = ticks_begin();
  for (uint64_t i = 0; i < count; i++) {
    free(blocks[i]);
  }
  batch_add(f->frees, count, ticks_end() - start);
}

static uint64_t batch_count(const fill *f, uint64_t first) {
  return f->count - first < PROBE_BATCH ? f->count - first : PROBE_BATCH;
}

void fill_run_batches(fill *f) {
  for (uint64_t i = 0; i < f->count; i += PROBE_BATCH) {
    batch_malloc(f, &f->blocks[i], batch_count(f, i));
  }
  fill_pin(f);
  for (uint64_t i = 0; i < f->count; i += PROBE_BATCH) {
    batch_free(f, &f->blocks[i], batch_count(f, i));
  }
}
