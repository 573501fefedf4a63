#include "heap/remote.h"

#include "blocks.h"
#include "epoch/inspect.h"
#include "heap/rest.h"
#include "state.h"
#include "tell/rows.h"
#include "upkeep/reports.h"

enum { CLASS_BYTES = 64, CLASS = TSL_CLASS_OF_64, WORD = 64 };

static struct tsl_heap *owner, *freer;

// A slab's blocks in the order of their addresses, so that a word's are 64 in a row.
static void open_blocks(unsigned words) {
  blocks_open((size_t)1 << 27, &owner, &freer);
  alloc_many(CLASS_BYTES, words * WORD);
}

static uint64_t *word_of(unsigned index) {
  struct tsl_position position = tsl_slab_position(CLASS, blocks[index]);
  CHECK(position.index >= 0 && position.index % WORD == (int)index % WORD);
  return &position.slab->remote[position.index / WORD];
}

static void free_from(unsigned first, unsigned count) {
  for (unsigned i = first; i < first + count; i++) free_as(freer, blocks[i]);
}

static void a_first_block_does_not_wait(void) {
  open_blocks(2);
  free_from(5, 1);
  CHECK_EQ(*word_of(5), UINT64_C(1) << 5);
  CHECK_EQ(tsl_remote_waiting(freer->home, CLASS), 0);
  free_from(WORD + 7, 1);
  CHECK_EQ(*word_of(WORD + 7), UINT64_C(1) << 7);
  CHECK_EQ(tsl_remote_waiting(freer->home, CLASS), 0);
}

static void those_of_its_word_wait_for_another_word(void) {
  open_blocks(2);
  free_from(0, WORD);
  CHECK_EQ(*word_of(0), 1);
  CHECK_EQ(tsl_remote_waiting(freer->home, CLASS), WORD - 1);
  free_from(WORD, 1);
  CHECK(*word_of(0) == ~UINT64_C(0));
  CHECK_EQ(*word_of(WORD), 1);
  CHECK_EQ(tsl_remote_waiting(freer->home, CLASS), 0);
  state_check();
}

static void owners_get_them_all_back(void) {
  open_blocks(2);
  free_from(0, WORD + 1);
  CHECK_EQ(tsl_slab_position(CLASS, blocks[0]).slab->out, 2 * WORD);
  tsl_heap_look_at_ready(owner, UINT32_MAX);
  CHECK_EQ(tsl_slab_position(CLASS, blocks[0]).slab->out, WORD - 1);
  state_check();
}

static void classes_gather_apart(void) {
  open_blocks(1);
  void *others[3];
  for (unsigned i = 0; i < 3; i++) others[i] = alloc(128);
  for (unsigned i = 0; i < 3; i++) {
    free_from(i, 1);
    free_as(freer, others[i]);
  }
  CHECK_EQ(tsl_remote_waiting(freer->home, CLASS), 2);
  CHECK_EQ(tsl_remote_waiting(freer->home, TSL_CLASS_OF_128), 2);
}

static void home_rest(struct tsl_home *home) { tsl_heap_rest(&home->heap); }
static void send_class(struct tsl_home *home) { tsl_remote_send(home, CLASS); }

// The thread's next look, its trim, and its end.
static void whatever_ends_the_wait_sends_all(void) {
  open_blocks(3);
  free_from(0, 3);
  act_as(freer, send_class);
  CHECK_EQ(*word_of(0), 7);
  free_from(WORD, 3);
  for (unsigned looks = 0; looks < TSL_BINS; looks++) act_as(freer, home_rest);
  CHECK_EQ(*word_of(WORD), 7);
  free_from(2 * WORD, 3);
  act_as(freer, tsl_home_rest_all);
  CHECK_EQ(*word_of(2 * WORD), 7);
  free_from(3, 3);
  tsl_home_pool(freer->home);
  CHECK_EQ(*word_of(0), 0x3f);
  for (unsigned class = 0; class < TSL_GATHERS; class ++)
    CHECK_EQ(tsl_remote_waiting(freer->home, class), 0);
}

// A fork took its thread when it had begun to gather another word.
static void what_a_lost_thread_gathered_is_forgotten(void) {
  open_blocks(2);
  for (unsigned class = 0; class < TSL_GATHERS; class += 1)
    freer->home->own->gathers[class] = (struct tsl_gather){.start = 1, .owner = 1, .round = 1};
  CHECK(!tsl_remote_valid(freer->home));
  act_as(freer, tsl_remote_forget);
  CHECK(tsl_remote_valid(freer->home));
}

// What was sent from a word may be allocated, and freed, again.
static void a_word_is_gathered_more_than_once(void) {
  open_blocks(1);
  for (unsigned round = 0; round < 5; round++) {
    free_from(0, WORD);
    act_as(freer, tsl_remote_send_all);
    CHECK(*word_of(0) == ~UINT64_C(0));
    tsl_heap_look_at_ready(owner, UINT32_MAX);
    CHECK_EQ(*word_of(0), 0);
    alloc_many(CLASS_BYTES, WORD);
    block_count -= WORD;
    CHECK(*word_of(0) == 0 && *word_of(WORD - 1) == 0);
  }
  state_check();
}

static void said(void *block, const char *what) {
  struct tsl_heap *before = tsl_heap_current;
  tsl_heap_current = freer;
  CHECK(blocks_is_reported(block, what));
  tsl_heap_current = before;
}

static void a_block_that_waits_is_not_freed_again(void) {
  open_blocks(2);
  free_from(0, 4);
  said(blocks[2], "free already");
  CHECK_EQ(tsl_remote_waiting(freer->home, CLASS), 3);
  said(blocks[0], "free already");
  act_as(freer, tsl_remote_send_all);
  CHECK_EQ(*word_of(0), 0xf);
}

// The second one of two others is found when its free arrives at the slab.
static void a_block_that_two_others_free_arrives_once(void) {
  open_blocks(2);
  struct tsl_heap *third = &tsl_home_take()->heap;
  free_from(0, 4);
  tsl_heap_current = third;
  tsl_fast_free(blocks[3]);
  char name[32];
  snprintf(name, sizeof name, "free(%p)", blocks[3]);
  said(blocks[WORD], name);
}

static void what_is_no_block_is_refused(void) {
  open_blocks(1);
  free_from(0, 2);
  said((char *)blocks[3] + 16, "not the beginning");
  CHECK_EQ(tsl_remote_waiting(freer->home, CLASS), 1);
  // Behind the last block of a slab there may be room for none.
  void *block = alloc(48);
  struct tsl_position position = tsl_slab_position(TSL_CLASS_OF_48, block);
  uintptr_t start = (uintptr_t)block - (unsigned)position.index * UINT64_C(48);
  unsigned capacity = tsl_sizeclasses[TSL_CLASS_OF_48].capacity;
  CHECK((start & (TSL_UNIT_BYTES - 1)) == 0 && capacity % WORD != 0);
  said((void *)(start + capacity * UINT64_C(48)), "not the beginning");
}

// The owner's part of an epoch, with a word of blocks, in slabs.
static struct tsl_part *enter_part(tslab_epoch id) {
  struct tsl_part *part = tsl_part_take(owner->home, tsl_epoch_slot(id));
  tsl_heap_current = &part->heap;
  part->heap.cell_class = false;
  block_count = 0;
  alloc_many(CLASS_BYTES, WORD);
  return part;
}

static struct tsl_part *enter_shared(void) {
  tslab_epoch id;
  CHECK_EQ(tsl_epoch_open_shared(0, &id), 0);
  struct tsl_part *part = enter_part(id);
  tsl_part_share(part);
  return part;
}

// A closed epoch's memory goes back when it drains: nothing of it is kept waiting.
static void blocks_of_epochs_that_end_do_not_wait(void) {
  open_blocks(1);
  tslab_epoch id;
  CHECK_EQ(tsl_epoch_open(0, NULL, &id), 0);
  enter_part(id);
  free_from(0, 4);
  CHECK_EQ(*word_of(0), 0xf);
  CHECK_EQ(tsl_remote_waiting(freer->home, CLASS), 0);
}

static void add_live(uint32_t slot, const struct tsl_survivors *live, void *context) {
  struct tsl_survivors *sum = context;
  if (slot != tsl_heap_current->epoch) return;
  sum->objects += live->objects;
  sum->bytes += live->bytes;
}

// The current epoch's.
static size_t live_objects(void) {
  struct tsl_survivors sum = {0};
  tsl_inspect_live(add_live, &sum);
  CHECK_EQ(sum.bytes, sum.objects * CLASS_BYTES);
  return sum.objects;
}

// By both ways of counting.
static void check_live(size_t objects) {
  tslab_epoch_stats stats = {.size = sizeof stats};
  uint32_t slot = tsl_heap_current->epoch;
  tslab_epoch id = tsl_epoch_id(slot, tsl_epoch_at(slot)->word);
  CHECK(tsl_inspect_epoch(id, &stats));
  CHECK_EQ(stats.live_objects, objects);
  CHECK_EQ(stats.live_bytes, objects * CLASS_BYTES);
  CHECK_EQ(live_objects(), objects);
}

static void what_waits_does_not_live(void) {
  open_blocks(1);
  enter_shared();
  check_live(WORD);
  free_from(0, 4);
  CHECK_EQ(tsl_remote_waiting(freer->home, CLASS), 3);
  check_live(WORD - 4);
  act_as(freer, send_class);
  check_live(WORD - 4);
}

// They count where their label's other blocks do, not in the home of the thread that freed them.
static void blocks_of_shared_epochs_wait(void) {
  open_blocks(1);
  tsl_options.stats = 1;
  tsl_report_start();
  uint32_t part = enter_shared()->heap.number;
  const struct tsl_bins_row *row = TSL_ROW(bins, part);
  free_from(0, 4);
  CHECK_EQ(*word_of(0), 1);
  CHECK_EQ(tsl_remote_waiting(freer->home, CLASS), 3);
  CHECK_EQ(row->away[CLASS], 1);
  act_as(freer, send_class);
  CHECK_EQ(*word_of(0), 0xf);
  CHECK_EQ(row->away[CLASS], 4);
  CHECK_EQ(TSL_ROW(heaps, part)->away_objects, 4);
  CHECK_EQ(freer->store->tallies[CLASS].sent, 0);
}

// Their own thread frees them from outside of the epoch.
static void what_waits_of_a_shared_epoch_is_not_freed_again(void) {
  open_blocks(1);
  enter_shared();
  free_from(0, 2);
  CHECK_EQ(tsl_remote_waiting(freer->home, CLASS), 1);
  tsl_heap_current = owner;
  CHECK(blocks_is_reported(blocks[1], "free already"));
  CHECK(blocks_is_reported(blocks[0], "free already"));
  tsl_fast_free(blocks[2]);
}

// A heap that ended may be of a shared epoch as its number comes again.
static void a_heap_that_comes_to_stay_is_asked_again(void) {
  open_blocks(1);
  uint32_t number = enter_shared()->heap.number;
  freer->home->own->passing = number;
  for (unsigned i = 0; i < WORD; i += 1) free_from(i, 1);
  CHECK_EQ(tsl_remote_waiting(freer->home, CLASS), 0);
  block_count = 0;
  alloc_many(CLASS_BYTES, 2 * WORD);
  free_from(0, 2 * WORD);
  CHECK(tsl_remote_waiting(freer->home, CLASS) != 0);
  CHECK_EQ(freer->home->own->passing, 0);
}

// One gather after the other, of the same class.
static void blocks_of_homes_count_after_those_of_a_shared_epoch(void) {
  open_blocks(1);
  void *first = blocks[0], *second = blocks[1];
  enter_shared();
  free_from(0, 2);
  free_as(freer, first);
  free_as(freer, second);
  CHECK_EQ(freer->store->tallies[CLASS].sent, 2);
  CHECK_EQ(*word_of(0), 3);
}

// There a free is looked at in the quarantine of its own thread, or at once.
static void nothing_waits_in_the_secure_build(void) {
  open_blocks(2);
  for (unsigned i = 0; i < WORD; i++) free_as(freer, blocks[i]);
  CHECK_EQ(tsl_remote_waiting(freer->home, CLASS), 0);
  tsl_heap_look_at_ready(owner, UINT32_MAX);
  state_check();
}

int main(void) {
  if (TSL_SECURE) {
    RUN(nothing_waits_in_the_secure_build);
    return test_status();
  }
  RUN(a_first_block_does_not_wait);
  RUN(those_of_its_word_wait_for_another_word);
  RUN(owners_get_them_all_back);
  RUN(classes_gather_apart);
  RUN(whatever_ends_the_wait_sends_all);
  RUN(what_a_lost_thread_gathered_is_forgotten);
  RUN(a_word_is_gathered_more_than_once);
  RUN(a_block_that_waits_is_not_freed_again);
  RUN(a_block_that_two_others_free_arrives_once);
  RUN(what_is_no_block_is_refused);
  RUN(blocks_of_epochs_that_end_do_not_wait);
  RUN(blocks_of_shared_epochs_wait);
  RUN(what_waits_does_not_live);
  RUN(what_waits_of_a_shared_epoch_is_not_freed_again);
  RUN(a_heap_that_comes_to_stay_is_asked_again);
  RUN(blocks_of_homes_count_after_those_of_a_shared_epoch);
  return test_status();
}
