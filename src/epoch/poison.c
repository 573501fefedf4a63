#include "epoch/poison.h"

#include "base/options.h"
#include "epoch/inspect.h"
#include "epoch/large_list.h"
#include "epoch/sweep.h"
#include "os/os.h"
#include "slab/cell.h"
#include "state/epoch.h"
#include "state/heap.h"
#include "state/misuse.h"

static uint32_t poisoned[TSL_POISON_EPOCHS];  // [remote]
static uint32_t next_poisoned;                // [remote]

bool tsl_epochs_wait;

void tsl_poison_init(void) { tsl_epochs_wait = tsl_option(release) == TSL_RELEASE_POISON; }

static const void *block_in_cell(const void *address, unsigned class) {
  uintptr_t start = tsl_cell_address(tsl_cell_of(address, class));
  uintptr_t at = (uintptr_t)address & ~(uintptr_t)(TSL_BLOCK_ALIGNMENT - 1);
  while (at > start && tsl_load_relaxed(tsl_granule_at(at)) == 0) at -= TSL_BLOCK_ALIGNMENT;
  return (const void *)at;
}

static const void *block_in_slab(const void *address, unsigned class) {
  uintptr_t offset = (uintptr_t)address & tsl_sizeclasses[class].slab_mask;
  return (const void *)((uintptr_t)address - offset % tsl_sizeclasses[class].bytes);
}

// The map names the first unit of a large block only.
static const void *block_of_units(size_t unit) {
  while (unit > tsl_region.first_unit && tsl_load_relaxed(tsl_map_entry(unit)) == 0) unit--;
  return (const void *)tsl_unit_address(unit);
}

// Where the block begins that an address lies in.
static const void *block_around(const void *address) {
  unsigned code = tsl_entry_code(tsl_map_lookup(address));
  if (tsl_code_is_cell(code)) return block_in_cell(address, tsl_code_class(code));
  if (tsl_map_lookup(address) == 0 || code == TSL_CODE_LARGE)
    return block_of_units(tsl_unit_of(address));
  return block_in_slab(address, tsl_code_class(code));
}

// Where option `on_error` lets the program go on, it finds the page zero.
static bool fault_explain(const void *address, const void *code) {
  size_t unit = tsl_unit_of(address);
  if (unit < tsl_region.first_unit || unit >= tsl_load_relaxed(&tsl_region.units)) return false;
  const void *block = block_around(address);
  uint32_t slot = tsl_inspect_slot_of(block);
  if (!tsl_epoch_waits(slot)) return false;
  tsl_misuse_late(address, block, code);
  uintptr_t page = (uintptr_t)address & ~(uintptr_t)(tsl_os_page_bytes() - 1);
  return tsl_os_protect((void *)page, tsl_os_page_bytes(), false);
}

// PO1.
void tsl_poison_begin(uint32_t slot) {
  static uint32_t explains;  // [remote]
  if (tsl_exchange_relaxed(&explains, 1) == 0) tsl_os_explain_faults(fault_explain);
  tsl_sweep_protect(slot, true);
  tsl_large_list_protect(slot, true);
}

bool tsl_poison_end(uint32_t slot) {
  bool is_open = tsl_sweep_protect(slot, false);
  return tsl_large_list_protect(slot, false) && is_open;
}

uint32_t tsl_poison_swap(uint32_t slot) {
  uint32_t place = tsl_add_relaxed(&next_poisoned, 1) % TSL_POISON_EPOCHS;
  return tsl_exchange_acq_rel(&poisoned[place], slot);  // pairs: detention
}
