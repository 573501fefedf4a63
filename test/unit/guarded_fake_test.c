#include "secured.h"

#include "slab/canary.h"
#include "state.h"
#include "upkeep/collect.h"

// What the secure build's malloc puts around blocks; other builds leave this file out.

static char *victim;  // of 90 bytes, in a block of 96
static void free_victim(void) { tsl_fast_free(victim); }
static void free_victim_as_other(void) { free_as_other(victim); }
static void shrink_victim(void) { CHECK(tsl_realloc(victim, 60) == victim); }
static void alloc_another(void) { CHECK(tsl_fast_malloc(500) != NULL); }

static void take_victim(void) {
  take_blocks();
  victim = tsl_fast_malloc(90);
  CHECK(victim != NULL);
  memset(victim, 0x5a, 90);
}

// Each byte behind the size, by the free of whomever, by realloc, and by the next allocation. What
// is zero counts as well where the tag is.
static void overflows_are_reported(void) {
  static void (*const calls[])(void) = {free_victim, free_victim_as_other, shrink_victim,
                                        alloc_another};
  for (int call = 0; call < 4; call++) {
    for (int at = 90; at < 96; at++) {
      take_victim();
      victim[at] = 0;
      CHECK(reports(calls[call], "wrote beyond the block"));
    }
  }
  state_check();
}

// Whoever keeps to the size that was asked for, or to the usable one, is accused of nothing.
static void what_is_usable_may_be_written(void) {
  tsl_options.on_error = TSL_ON_ERROR_ABORT;
  for (size_t bytes = 1; bytes <= 2 * TSL_SMALL_LIMIT; bytes += 1 + bytes / 9) {
    char *block = tsl_fast_malloc(bytes);
    CHECK_GE(tsl_usable(block), bytes);
    memset(block, 0xff, tsl_usable(block));
    block = tsl_realloc(block, bytes / 2 + 1);
    memset(block, 0xff, tsl_usable(block));
    block = tsl_realloc(block, bytes * 3);
    memset(block, 0xff, tsl_usable(block));
    (void)tsl_fast_malloc(1);
    tsl_fast_free(block);
    char *aligned = tsl_aligned(64, bytes);
    memset(aligned, 0xff, tsl_usable(aligned));
    tsl_fast_free(aligned);
  }
  state_check();
}

// A unit that held large blocks says nothing of the small ones that it holds next.
static void earlier_sizes_are_forgotten(void) {
  enum { MANY = 100, HIGHEST = 0xff << TSL_CANARY_LOW_BITS };
  static void *large[MANY];
  tsl_options.on_error = TSL_ON_ERROR_ABORT;
  for (int i = 0; i < MANY; i++) large[i] = tsl_fast_malloc(HIGHEST);
  for (int i = 0; i < MANY; i++) tsl_fast_free(large[i]);
  tsl_home_collect(tsl_heap_current->home);
  for (int i = 0; i < 100 * (int)(TSL_UNIT_BYTES / 16); i++) CHECK(tsl_fast_malloc(8) != NULL);
  state_check();
}

// The owner may be reading the canary at that moment.
static void others_move_what_they_resize(void) {
  char *block = tsl_fast_malloc(100);
  memset(block, 0x5a, 100);
  struct tsl_heap *mine = tsl_heap_current;
  tsl_heap_current = &tsl_home_take()->heap;
  char *moved = tsl_realloc(block, 90);
  CHECK(moved != block && moved[89] == 0x5a);
  CHECK(tsl_realloc(moved, 80) == moved);
  tsl_heap_current = mine;
  state_check();
}

int main(void) {
  RUN(others_move_what_they_resize);
  RUN(earlier_sizes_are_forgotten);
  RUN(overflows_are_reported);
  RUN(what_is_usable_may_be_written);
  return test_status();
}
