#include "heap/remote.h"
#include "state.h"
#include "tended.h"
#include "upkeep/pool.h"
#include "upkeep/rounds.h"

enum { PARTS = 5 };

static struct tsl_home *home;

// A round over the home.
static void help(void) {
  home = tsl_heap_current->home;
  home->loosened = 1;
  tsl_heap_current = &tsl_home_empty.heap;
  for (os_fake.now_ms += TENDED_DELAY_MS + 1; tsl_rounds_step();) continue;
  tsl_heap_current = &home->heap;
}

static void *block;  // the last one that was allocated in an epoch

// An epoch in which the thread has two cells, or a slab.
static tslab_epoch open_with(tslab_epoch_options options, struct tsl_part **part) {
  options.size = sizeof options;
  tslab_epoch epoch = tslab_epoch_open("grown", &options);
  tslab_scope scope;
  CHECK_EQ(tslab_scope_enter(&scope, epoch), 0);
  *part = tsl_part_of(tsl_heap_current);
  while (!(*part)->is_grown) CHECK((block = tslab_malloc(512)) != NULL);
  CHECK_EQ(tslab_scope_leave(&scope), 0);
  return epoch;
}

static tslab_epoch open_grown(struct tsl_part **part) {
  return open_with((tslab_epoch_options){0}, part);
}

// The first, the last and one in between.
static void parts_that_have_ended_leave_the_list(void) {
  struct tsl_part *parts[PARTS];
  tslab_epoch epochs[PARTS];
  tended_begin();
  for (int i = 0; i < PARTS; i++) epochs[i] = open_grown(&parts[i]);
  for (int i = 0; i < PARTS; i += 2) CHECK_EQ(tslab_epoch_release(epochs[i]), 0);
  for (int i = 0; i < PARTS; i++) CHECK(parts[i]->is_grown);
  help();
  for (int i = 0; i < PARTS; i++) CHECK_EQ(parts[i]->is_grown, i % 2);
  CHECK_EQ(home->own->grown, parts[3]->heap.number);
  CHECK_EQ(parts[3]->grown_next, parts[1]->heap.number);
  CHECK_EQ(parts[1]->grown_next, 0);
  state_check();
}

static void a_part_comes_back_as_it_grows_again(void) {
  struct tsl_part *first, *second, *again;
  tended_begin();
  tslab_epoch epoch = open_grown(&first);
  open_grown(&second);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  help();
  open_grown(&again);
  CHECK(again == first && again->is_grown);
  CHECK_EQ(home->own->grown, first->heap.number);
  CHECK_EQ(first->grown_next, second->heap.number);
  CHECK_EQ(second->grown_next, 0);
  state_check();
}

// One turn passes over 64. The part where it stops, which may come to grow until the next turn, is
// for the next round.
static void many_that_have_ended_leave_in_two_rounds(void) {
  enum { MANY = 300 };
  static tslab_epoch epochs[MANY];
  struct tsl_part *part, *last;
  tended_begin();
  for (int i = 0; i < MANY; i++) epochs[i] = open_grown(&part);
  open_grown(&last);
  for (int i = 0; i < MANY; i++) CHECK_EQ(tslab_epoch_release(epochs[i]), 0);
  help();
  help();
  CHECK_EQ(home->own->grown, last->heap.number);
  CHECK_EQ(last->grown_next, 0);
  state_check();
}

// Nor does one leave that the helper only passes over.
static void parts_that_keep_their_pages_stay(void) {
  struct tsl_part *ended, *first, *second;
  tended_begin();
  open_with((tslab_epoch_options){.purge = TSLAB_PURGE_KEEP}, &first);
  tslab_epoch epoch = open_grown(&ended);
  open_with((tslab_epoch_options){.purge = TSLAB_PURGE_KEEP}, &second);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  help();
  CHECK_EQ(home->own->grown, second->heap.number);
  CHECK_EQ(second->grown_next, first->heap.number);
  CHECK_EQ(first->grown_next, 0);
  CHECK(first->is_grown && second->is_grown && !ended->is_grown);
  state_check();
}

static void free_as_another(void *freed) {
  home = tsl_heap_current->home;
  tsl_heap_current = &tsl_home_take()->heap;
  tslab_free(freed);
  tsl_remote_send_all(tsl_heap_current->home);
  tsl_heap_current = &home->heap;
}

// How many rounds end in as long as three may take.
static uint32_t rounds_of_three_delays(void) {
  uint32_t rounds = home->rounds;
  tsl_heap_current = &tsl_home_empty.heap;
  for (int i = 0; i < 3; i++, os_fake.now_ms += TENDED_DELAY_MS + 1) tsl_rounds_step();
  tsl_heap_current = &home->heap;
  return home->rounds - rounds;
}

// What others free there brings one round, and not one after the other.
static void a_part_that_is_passed_over_is_no_news_twice(void) {
  struct tsl_part *part;
  tended_begin();
  open_with((tslab_epoch_options){.first_cell_bytes = TSLAB_NO_CELLS, .purge = TSLAB_PURGE_KEEP},
            &part);
  for (int i = 0; i < 3; i++) help();
  rounds_of_three_delays();
  CHECK_EQ(rounds_of_three_delays(), 0);
  free_as_another(block);
  CHECK((uint32_t)part->heap.ready != 0 && home->loosened == 0);
  CHECK_EQ(rounds_of_three_delays(), 1);
  CHECK_EQ(rounds_of_three_delays(), 0);
  CHECK_EQ(tsl_rounds_due_ms(), UINT64_MAX);
  state_check();
}

int main(void) {
  RUN_UNLESS_SECURE(parts_that_have_ended_leave_the_list);
  RUN_UNLESS_SECURE(a_part_comes_back_as_it_grows_again);
  RUN_UNLESS_SECURE(many_that_have_ended_leave_in_two_rounds);
  RUN_UNLESS_SECURE(parts_that_keep_their_pages_stay);
  RUN_UNLESS_SECURE(a_part_that_is_passed_over_is_no_news_twice);
  return test_status();
}
