#include "state/entry.h"

#include "slab/cell.h"
#include "test.h"

static void entries_hold_owners_and_classes(void) {
  static const uint32_t owners[] = {1, TSL_MOST_HEAPS - 1, TSL_HEAP_NOBODY, TSL_HEAP_SEALED};
  for (unsigned i = 0; i < sizeof owners / sizeof *owners; i++) {
    for (unsigned class = 0; class < TSL_BINS; class += 1) {
      uint32_t entry = tsl_entry(owners[i], tsl_class_code(class));
      CHECK_EQ(tsl_entry_owner(entry), owners[i]);
      CHECK_EQ(tsl_entry_class(entry), class);
      CHECK_EQ(tsl_entry_class(entry | TSL_CODE_VISITED), class);
    }
  }
}

static void codes_tell_slabs_cells_and_large_blocks_apart(void) {
  for (unsigned class = 0; class < TSL_BINS; class += 1) {
    CHECK_EQ(tsl_code_class(tsl_class_code(class)), class);
    CHECK_EQ(tsl_code_is_cell(tsl_class_code(class)), tsl_is_cell(class));
  }
  CHECK(!tsl_code_is_cell(TSL_CODE_LARGE));
}

int main(void) {
  RUN(entries_hold_owners_and_classes);
  RUN(codes_tell_slabs_cells_and_large_blocks_apart);
  return test_status();
}
