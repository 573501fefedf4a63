#include "slab/cell.h"

#include <string.h>

#define SHARE(bytes) (1 | (uint64_t)((bytes) >> TSL_GRANULE_LOG2) << 32)
const uint64_t tsl_cell_shares[TSL_CLASSES + 1] = {
    0,
#define TINY(least, bytes) SHARE(bytes),
#define MEDIUM(bytes, units) SHARE(bytes),
#include "slab/sizeclass.def"
};
#undef TINY
#undef MEDIUM

void tsl_cell_open(tsl_cell_number number, uint32_t heap, uint32_t epoch) {
  tsl_store_relaxed(tsl_cell_remote(number), TSL_CELL_BIAS);
  struct tsl_cell *cell = tsl_cell_at(number);
  cell->blocks = 0;
  cell->granules = 0;
  cell->newer = 0;
  cell->older = 0;
  tsl_store_relaxed(&cell->freed, 0);
  tsl_store_relaxed(&cell->heap, heap);
  tsl_store_relaxed(&cell->epoch, epoch);
}

void tsl_cell_clear(tsl_cell_number number) {
  struct tsl_cell *cell = tsl_cell_at(number);
  memset(tsl_granule_at(tsl_cell_address(number)), 0, cell->granules);
  cell->blocks = 0;
  tsl_store_relaxed(&cell->freed, 0);
  cell->granules = 0;
}

void tsl_cell_close(tsl_cell_number number) {
  tsl_cell_clear(number);
  tsl_cell_open(number, 0, 0);
}

uint32_t tsl_cell_seal(tsl_cell_number number) {
  struct tsl_cell *cell = tsl_cell_at(number);
  uint32_t kept = cell->blocks - cell->freed;
  tsl_store_relaxed(&cell->heap, 0);
  uint32_t change = 0 - TSL_CELL_BIAS - kept;
  uint32_t before = tsl_add_acq_rel(tsl_cell_remote(number), change);  // pairs: cell-remote
  return 0 - (before + change);
}

uint32_t tsl_cell_out(tsl_cell_number number) {
  const struct tsl_cell *cell = tsl_cell_at(number);
  uint32_t remote = tsl_load_acquire(tsl_cell_remote(number));  // pairs: cell-remote
  if (tsl_load_relaxed(&cell->heap) == 0) return 0 - remote;
  return cell->blocks - tsl_load_relaxed(&cell->freed) - (remote - TSL_CELL_BIAS);
}

// A free that comes between marks its byte before or behind this, and so knows whether its block is
// among the counted.
void tsl_cell_count(tsl_cell_number number, uint32_t granules, uint32_t *counts) {
  uint8_t *granule = tsl_granule_at(tsl_cell_address(number));
  for (uint32_t i = 0; i < granules; i++) {
    if (tsl_granule_live(tsl_load_relaxed(&granule[i])) >= TSL_CLASSES) continue;
    unsigned before = tsl_or_relaxed(&granule[i], (uint8_t)TSL_CELL_COUNTED);
    if (tsl_granule_live(before) < TSL_CLASSES) counts[tsl_granule_live(before)]++;
  }
}

size_t tsl_cell_live_bytes(tsl_cell_number number, uint32_t granules) {
  const uint8_t *granule = tsl_granule_at(tsl_cell_address(number));
  size_t bytes = 0;
  for (uint32_t i = 0; i < granules; i++) {
    unsigned class = tsl_granule_live(tsl_load_relaxed(&granule[i]));
    if (class < TSL_CLASSES) bytes += tsl_sizeclasses[class].bytes;
  }
  return bytes;
}
