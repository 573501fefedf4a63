// What only the secure build does; other builds leave this file out.
#include "state/neighbours.h"

#include "secured.h"

static void *neighbour;  // a free one
static void write_before(void) {
  ((char *)neighbour)[TAKES - 1] = 1;
  tsl_fast_free((char *)neighbour + TAKES);
}
static void write_behind(void) {
  ((char *)neighbour)[0] = 1;
  tsl_fast_free((char *)neighbour - TAKES);
}

// Lets all blocks leave the quarantine but the last ones.
static void free_many_others(void) {
  for (int i = 0; i < TSL_QUARANTINE_BLOCKS; i++) tsl_fast_free(tsl_fast_malloc(5000));
}

// A block whose neighbours both live.
static void *free_inner_block(void) {
  uintptr_t inner = ((uintptr_t)blocks[0] & ~(uintptr_t)(TSL_UNIT_BYTES - 1)) + 50 * TAKES;
  for (int i = 0; i < 2000; i++) (void)tsl_fast_malloc(BYTES);
  tsl_fast_free((void *)inner);
  return (void *)inner;
}

static void writes_to_free_neighbours_are_reported(void) {
  for (int behind = 0; behind < 2; behind++) {
    take_blocks();
    neighbour = free_inner_block();
    if (behind) free_many_others();
    CHECK(reports(behind ? write_behind : write_before, "was written to"));
  }
}

int main(void) {
  RUN(writes_to_free_neighbours_are_reported);
  return test_status();
}
