#include "heap/visit.h"

#include "blocks.h"
#include "heap/remote.h"
#include "state.h"

enum { CLASS_BYTES = 64, CLASS = TSL_CLASS_OF_64, WORD = 64 };

static struct tsl_heap *owner, *freer;

static void open_blocks(unsigned words) {
  blocks_open((size_t)1 << 27, &owner, &freer);
  alloc_many(CLASS_BYTES, words * WORD);
}

static void free_from(unsigned first, unsigned count) {
  for (unsigned i = first; i < first + count; i++) free_as(freer, blocks[i]);
}

static bool is_visited(const void *block) {
  return (tsl_map_lookup(block) & TSL_CODE_VISITED) != 0;
}

// Frees as many that are right as a heap compares before it pauses.
static void free_checks_from(unsigned first) {
  for (unsigned i = 0; i < TSL_VISIT_CHECKS; i++) {
    CHECK(is_visited(blocks[first + i]));
    CHECK_EQ(owner->home->unvisited, 0);
    tsl_fast_free(blocks[first + i]);
  }
  CHECK_EQ(owner->home->unvisited, 1);
}

// Sent or waiting, the owner's free of it is found, until the owner has collected from the slab.
static void a_block_that_others_freed_is_not_freed_by_its_owner(void) {
  open_blocks(3);
  CHECK(!is_visited(blocks[0]));
  free_from(0, WORD + 4);
  CHECK(is_visited(blocks[0]));
  CHECK_EQ(tsl_remote_waiting(freer->home, CLASS), 3);
  for (unsigned i = 0; i < WORD + 4; i++) CHECK(blocks_is_reported(blocks[i], "is free already"));
  for (unsigned i = WORD + 4; i < 2 * WORD; i++) tsl_fast_free(blocks[i]);
  CHECK(blocks_is_reported((char *)blocks[2 * WORD] + 16, "not the beginning"));
  act_as(freer, tsl_remote_send_all);
  CHECK(blocks_is_reported(blocks[WORD + 1], "is free already"));
  tsl_heap_look_at_ready(owner, UINT32_MAX);
  CHECK(!is_visited(blocks[0]));
  state_check();
}

// The first block of the next word is 64 places behind the first that waits.
static void the_next_word_does_not_wait(void) {
  open_blocks(2);
  free_from(1, 1);
  free_from(0, 1);
  CHECK_EQ(tsl_remote_waiting(freer->home, CLASS), 1);
  CHECK_EQ(strlen(blocks_free_and_hear(blocks[WORD])), 0);
  CHECK(blocks_is_reported(blocks[0], "is free already"));
}

// What is found does not bring the pause nearer; the mark goes with the next free that is right.
static void a_heap_pauses_when_it_found_nothing(void) {
  open_blocks(3);
  free_from(0, 2);
  for (unsigned i = 0; i < 2 * TSL_VISIT_CHECKS; i++)
    CHECK(blocks_is_reported(blocks[i % 2], "is free already"));
  free_checks_from(2);
  CHECK(is_visited(blocks[0]));
  tsl_fast_free(blocks[2 + TSL_VISIT_CHECKS]);
  CHECK(!is_visited(blocks[0]));
  tsl_heap_look_at_ready(owner, UINT32_MAX);
  free_from(WORD + 4, 1);
  CHECK(!is_visited(blocks[0]));
  state_check();
}

static void a_pause_ends_after_some_ticks(void) {
  open_blocks(3);
  free_from(0, 2);
  for (unsigned i = 0; i < TSL_VISIT_PAUSE; i++) tsl_visit_tick(owner->home);
  free_checks_from(2);
  tsl_heap_look_at_ready(owner, UINT32_MAX);
  for (unsigned i = 0; i < TSL_VISIT_PAUSE - 1; i++) tsl_visit_tick(owner->home);
  free_from(2 * WORD, 1);
  CHECK(!is_visited(blocks[0]));
  tsl_heap_look_at_ready(owner, UINT32_MAX);
  tsl_visit_tick(owner->home);
  free_from(WORD + 4, 1);
  CHECK(is_visited(blocks[0]));
  CHECK(blocks_is_reported(blocks[WORD + 4], "is free already"));
  state_check();
}

// A slab of a declared epoch, and one of larger blocks, are freed into without a mark.
static void others_have_no_mark(void) {
  open_blocks(1);
  void *medium = alloc(2048);
  free_as(freer, medium);
  CHECK(!is_visited(medium));
  tslab_epoch id;
  blocks_open_part(owner, TSLAB_NO_CELLS, &id);
  void *block = alloc(CLASS_BYTES);
  free_as(freer, block);
  CHECK(!is_visited(block));
}

// There each free is looked at, and a mark would say nothing.
static void nothing_is_marked_in_the_secure_build(void) {
  open_blocks(1);
  free_from(0, WORD);
  CHECK(!is_visited(blocks[0]));
}

int main(void) {
  if (TSL_SECURE) {
    RUN(nothing_is_marked_in_the_secure_build);
    return test_status();
  }
  RUN(a_block_that_others_freed_is_not_freed_by_its_owner);
  RUN(the_next_word_does_not_wait);
  RUN(a_heap_pauses_when_it_found_nothing);
  RUN(a_pause_ends_after_some_ticks);
  RUN(others_have_no_mark);
  return test_status();
}
