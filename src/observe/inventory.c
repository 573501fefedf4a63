#include "observe/inventory.h"

#include "base/bits.h"
#include "epoch/inspect.h"
#include "os/os.h"

// An epoch that was there before the walk. An epoch that got its slot later is passed over.
struct row {
  tslab_epoch id;  // 0: none
  size_t live_objects;
  size_t live_bytes;
};

struct inventory {
  struct row *rows;  // by slot
  uint32_t count;
};

static int note_epoch(tslab_epoch id, void *context) {
  const struct inventory *inventory = context;
  uint32_t slot = tsl_epoch_slot(id);
  if (slot < inventory->count) inventory->rows[slot].id = id;
  return 0;
}

static void row_add_live(uint32_t slot, const struct tsl_survivors *live, void *context) {
  const struct inventory *inventory = context;
  if (slot >= inventory->count) return;
  inventory->rows[slot].live_objects += live->objects;
  inventory->rows[slot].live_bytes += live->bytes;
}

struct telling {
  void (*visit)(const tslab_epoch_stats *stats, void *context);
  void *context;
};

// A sum may be below zero: blocks that became hot after the walk had passed their slab are
// subtracted without having been added.
static size_t settled(size_t sum) { return sum > SIZE_MAX / 2 ? 0 : sum; }

static void row_tell(const struct telling *telling, const struct row *row) {
  tslab_epoch_stats stats = {.size = sizeof stats};
  if (row->id == 0 || !tsl_inspect_record(row->id, &stats)) return;
  stats.live_objects = settled(row->live_objects);
  stats.live_bytes = settled(row->live_bytes);
  telling->visit(&stats, telling->context);
}

// Where the system has no memory for the rows: one walk for each epoch.
static int tell_alone(tslab_epoch id, void *context) {
  const struct telling *telling = context;
  tslab_epoch_stats stats = {.size = sizeof stats};
  if (!tsl_inspect_epoch(id, &stats)) return 0;
  stats.threads = 0;
  stats.scopes = 0;
  stats.allocated_objects = 0;
  stats.allocated_bytes = 0;
  telling->visit(&stats, telling->context);
  return 0;
}

void tsl_inventory_each(void (*visit)(const tslab_epoch_stats *stats, void *context),
                        void *context) {
  struct telling telling = {visit, context};
  uint32_t count = tsl_load_relaxed(&tsl_region.last_epoch) + 1;
  size_t bytes = tsl_round_up(count * sizeof(struct row), tsl_os_page_bytes());
  if (count == 1) return;
  // From the system: a block of the allocator's own would be counted as well.
  struct inventory inventory = {tsl_os_borrow(bytes), count};
  if (inventory.rows == NULL) {
    tsl_inspect_epochs(tell_alone, &telling);
    return;
  }
  tsl_inspect_epochs(note_epoch, &inventory);
  tsl_inspect_live(row_add_live, &inventory);
  for (uint32_t slot = 1; slot < count; slot++) row_tell(&telling, &inventory.rows[slot]);
  tsl_os_unreserve(inventory.rows, bytes);
}
