#include "tell/process.h"

#include <string.h>

#include "memory/limit.h"
#include "memory/segment.h"
#include "memory/unit_cache.h"
#include "memory/units.h"
#include "os/code.h"
#include "os/os.h"

void tsl_report_classes(void) {
  for (unsigned class = 0; class < TSL_CLASSES; class += 1) {
    struct tsl_classes_row *row = TSL_ROW(classes, class);
    if (row == NULL) return;
    TSL_PUT(row, bytes, tsl_sizeclasses[class].bytes);
    TSL_PUT(row, slab_bytes, tsl_sizeclasses[class].slab_bytes);
    TSL_PUT(row, capacity, tsl_sizeclasses[class].capacity);
  }
}

void tsl_report_purged(unsigned class, size_t bytes) {
  if (bytes == 0 || class >= TSL_CLASSES || !tsl_report_is_on()) return;
  struct tsl_classes_row *row = TSL_ROW(classes, class);
  if (row != NULL) tsl_add_relaxed(&row->purged_bytes, bytes);
}

void tsl_report_name(void) {
  char name[TSL_NAME_BYTES + 1];
  struct tsl_process_row *row = TSL_ROW(process, 0);
  if (row == NULL) return;
  tsl_os_read_file("/proc/self/comm", name, sizeof name - 1);
  name[strcspn(name, "\n")] = '\0';
  tsl_rows_put_text(row->name, name, sizeof row->name);
}

struct large_counts {
  uint64_t objects, bytes, allocations;
};

static struct large_counts large_counts(void) {
  return (struct large_counts){tsl_load_relaxed(&tsl_counts.large_objects),
                               tsl_load_relaxed(&tsl_counts.large_bytes),
                               tsl_load_relaxed(&tsl_counts.large_allocations)};
}

// Several threads may write at once. Each reads the counts again after it wrote, until they are
// what it wrote: so the write that comes last is of the newest counts.
static void put_large(struct tsl_process_row *row) {
  struct large_counts told, now = large_counts();
  do {
    told = now;
    TSL_PUT(row, large_objects, told.objects);
    TSL_PUT(row, large_bytes, told.bytes);
    TSL_PUT(row, large_allocations, told.allocations);
    tsl_fence_seq_cst();  // pairs: told-last
    now = large_counts();
  } while (memcmp(&now, &told, sizeof now) != 0);
}

// As put_large: the write that comes last is of the newest limit.
static void put_limit(struct tsl_process_row *row) {
  uint64_t told;
  do {
    told = tsl_limit_bytes();
    TSL_PUT(row, soft_limit_bytes, told);
    tsl_fence_seq_cst();  // pairs: told-last
  } while (tsl_limit_bytes() != told);
}

// Several threads may write at once: the largest stays. Compares with the row itself, which begins
// with 0 in each file; what another process wrote there costs at most the peak (M1).
static void raise_peak(struct tsl_process_row *row) {
  size_t idle = tsl_units_free() + tsl_unit_cache_units(), open = tsl_units_open();
  uint64_t held_bytes = open > idle ? (uint64_t)(open - idle) << TSL_UNIT_LOG2 : 0;
  uint64_t peak = tsl_load_relaxed(&row->peak_held_bytes);
  while (held_bytes > peak) {
    if (!tsl_cas_relaxed(&row->peak_held_bytes, &peak, held_bytes)) continue;
    TSL_PUT(row, peak_ms, tsl_os_now_ms());
    return;
  }
}

static void put_places(struct tsl_process_row *row) {
  size_t units = tsl_region.limit_units - tsl_region.first_unit;
  TSL_PUT(row, region_at, tsl_region.base);
  TSL_PUT(row, region_bytes, tsl_region.span_bytes);
  TSL_PUT(row, blocks_at, tsl_unit_address(tsl_region.first_unit));
  TSL_PUT(row, blocks_bytes, units << TSL_UNIT_LOG2);
  struct tsl_code code = tsl_code_place();
  TSL_PUT(row, code_at, code.start);
  TSL_PUT(row, code_bytes, code.end - code.start);
}

void tsl_report_process(void) {
  struct tsl_process_row *row = TSL_ROW(process, 0);
  if (row == NULL) return;
  TSL_PUT(row, open_bytes, tsl_units_open() << TSL_UNIT_LOG2);
  TSL_PUT(row, free_bytes, tsl_units_free() << TSL_UNIT_LOG2);
  TSL_PUT(row, dirty_bytes, tsl_units_dirty() << TSL_UNIT_LOG2);
  TSL_PUT(row, cached_bytes, tsl_unit_cache_units() << TSL_UNIT_LOG2);
  put_large(row);
  raise_peak(row);
  put_limit(row);
  put_places(row);
  TSL_PUT(row, purges, tsl_load_relaxed(&tsl_counts.purges));
  TSL_PUT(row, purged_bytes, tsl_load_relaxed(&tsl_counts.purged_bytes));
  TSL_PUT(row, purges_refused, tsl_load_relaxed(&tsl_counts.purges_refused));
  TSL_PUT(row, limits_refused, tsl_load_relaxed(&tsl_counts.limits_refused));
  TSL_PUT(row, memory_refused, tsl_load_relaxed(&tsl_counts.memory_refused));
}

// Compares with the row itself: what another process wrote there costs at most a needless report
// (M1).
void tsl_report_growth(void) {
  const struct tsl_process_row *row = TSL_ROW(process, 0);
  size_t open_bytes = tsl_units_open() << TSL_UNIT_LOG2;
  if (row != NULL && tsl_load_relaxed(&row->open_bytes) != open_bytes) tsl_report_process();
}

void tsl_report_idle(void) {
  const struct tsl_process_row *row = TSL_ROW(process, 0);
  if (row == NULL) return;
  size_t cached_bytes = tsl_unit_cache_units() << TSL_UNIT_LOG2;
  bool is_told =
      tsl_load_relaxed(&row->purges) == tsl_load_relaxed(&tsl_counts.purges) &&
      tsl_load_relaxed(&row->purges_refused) == tsl_load_relaxed(&tsl_counts.purges_refused) &&
      tsl_load_relaxed(&row->cached_bytes) == cached_bytes;
  if (!is_told) tsl_report_process();
}

void tsl_report_all_large(void) {
  struct tsl_process_row *row = tsl_report_is_on() ? TSL_ROW(process, 0) : NULL;
  if (row == NULL) return;
  put_large(row);
  raise_peak(row);
}

void tsl_report_limit(void) {
  struct tsl_process_row *row = tsl_report_is_on() ? TSL_ROW(process, 0) : NULL;
  if (row != NULL) put_limit(row);
}
