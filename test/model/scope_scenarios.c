// Entering, leaving and thread exit against closing and releasing.
#include <errno.h>

#include "epoch/regulars.h"
#include "scenario.h"
#include "state/history.h"
#include "state/label.h"

static void prepare_epoch(void) {
  warm_all();
  epoch = open_slabs();
}

static void enter(int thread) { EXPECT(tslab_scope_enter(&scopes[thread], epoch) == 0); }
static void enter_a(void) { enter(A); }
static void enter_b(void) { enter(B); }

static void leave(int thread) { EXPECT(tslab_scope_leave(&scopes[thread]) == 0); }

// A stay, if the epoch lets the thread in.
static void stay(int thread, unsigned index, size_t bytes) {
  int error = tslab_scope_enter(&scopes[thread], epoch);
  EXPECT(error == 0 || error == ECANCELED || error == ESTALE || error == EBUSY);
  if (error != 0) return;
  blocks[index] = tslab_malloc(bytes);
  EXPECT(blocks[index] != NULL);
  EXPECT(tslab_scope_leave(&scopes[thread]) == 0);
}

static void stay_a(void) { stay(A, 10, BLOCK_BYTES); }
static void stay_empty(int thread) {
  if (tslab_scope_enter(&scopes[thread], epoch) == 0) leave(thread);
}
static void stay_empty_a(void) { stay_empty(A); }
static void stay_empty_c(void) { stay_empty(C); }
static void stay_and_free_a(void) {
  stay(A, 10, BLOCK_BYTES);
  if (blocks[10] != NULL) free_block(10);
}

static void leave_a(void) { leave(A); }
static void allocate_and_leave_a(void) {
  blocks[10] = tslab_malloc(BLOCK_BYTES);
  EXPECT(blocks[10] != NULL);
  leave(A);
}
static void free_inside_a(void) {
  free_block(0);
  leave(A);
}
static void free_0(void) { free_block(0); }
static void free_1(void) { free_block(1); }
static void exit_a(void) { model_exit_thread(); }
static void leave_b(void) { leave(B); }

// Parts of an earlier epoch lie ready, so that nobody needs the lock of the region's growth.
static void with_parts(void) {
  prepare_epoch();
  allocate_in_epoch(A, 0, 1, BLOCK_BYTES);
  allocate_in_epoch(C, 1, 1, BLOCK_BYTES);
  release_epoch();
  blocks[0] = NULL;
  blocks[1] = NULL;
  epoch = open_slabs();
}

// A's part exists and is empty but for one block.
static void joined(void) {
  prepare_epoch();
  allocate_in_epoch(A, 0, 1, BLOCK_BYTES);
}
static void joined_2(void) {
  prepare_epoch();
  allocate_in_epoch(A, 0, 2, BLOCK_BYTES);
}
static void joined_cells(void) {
  warm_all();
  epoch = open_cells();
  allocate_in_epoch(A, 0, 2, BLOCK_BYTES);
}
static void a_inside(void) {
  joined_2();
  model_as(A, enter_a);
}
static void a_inside_cells(void) {
  joined_cells();
  model_as(A, enter_a);
}
static void a_and_b_inside(void) {
  prepare_epoch();
  model_as(A, enter_a);
  model_as(B, enter_b);
}
static void closed_epoch(void) {
  joined();
  model_as(A, close_epoch);
}

static void closed_around_a(void) {
  a_inside();
  model_as(B, close_epoch);
}

// No block of A's stay ends with a reset that succeeds while A is inside.
static void reset_epoch(void) {
  int error = tslab_epoch_reset(epoch);
  EXPECT(error == 0 || error == EBUSY || error == ECANCELED || error == ESTALE);
}
static void close_or_find_busy(void) {
  int error = tslab_epoch_close(epoch).error;
  EXPECT(error == 0 || error == EBUSY);
}
static void write_inside_a(void) {
  int error = tslab_scope_enter(&scopes[A], epoch);
  EXPECT(error == 0 || error == EBUSY);
  if (error != 0) return;
  unsigned char *block = tslab_malloc(BLOCK_BYTES);
  EXPECT(block != NULL && tslab_epoch_of(block) == epoch);
  tslab_free(block);
  block = tslab_malloc(BLOCK_BYTES);
  EXPECT(block != NULL && tslab_epoch_of(block) == epoch);
  leave(A);
}
static void check_inside_a(void) {
  EXPECT(tslab_epoch_of(blocks[0]) == epoch && tslab_epoch_of(blocks[1]) == epoch);
  leave(A);
}

// While A enters by its id, the epoch ends and its slot gets another one, which lays its blocks
// elsewhere.
static tslab_epoch next;

static void with_parts_cells(void) {
  with_parts();
  close_epoch();
  epoch = open_cells();
}
static void next_is_slabs(void) {
  close_epoch();
  next = open_slabs();
}
static void next_is_cells(void) {
  close_epoch();
  next = open_cells();
}
static void next_is_reset(void) {
  next_is_cells();
  EXPECT(tslab_epoch_reset(next) == 0);
}
static void next_has_no_child(void) {
  tslab_epoch_stats stats = {.size = sizeof stats};
  next_is_cells();
  EXPECT(tslab_epoch_get_stats(next, &stats) == 0 && stats.children == 0);
}
static void open_child_of_old(void) {
  tslab_epoch_options options = {.size = sizeof options, .parent = epoch};
  tslab_epoch child = tslab_epoch_open("child", &options);
  EXPECT(child != TSLAB_NO_EPOCH || errno == ECANCELED || errno == ESTALE);
  if (child != TSLAB_NO_EPOCH) EXPECT(tslab_epoch_close(child).error == 0);
}
// The epoch that A knows is never reset.
static void enter_one_that_ends(void) {
  int error = tslab_scope_enter(&scopes[A], epoch);
  EXPECT(error == 0 || error == ECANCELED || error == ESTALE);
  if (error == 0) leave_a();
}
static void allocate_in_next(void) {
  tslab_epoch_stats stats = {.size = sizeof stats};
  EXPECT(tslab_epoch_get_stats(next, &stats) == 0 && stats.threads == 0);
  blocks[0] = tslab_epoch_malloc(next, BLOCK_BYTES);
  EXPECT(blocks[0] != NULL && tslab_epoch_of(blocks[0]) == next);
}
static void end_next(void) {
  model_as(A, allocate_in_next);
  epoch = next;
  free_rest();
  close_epoch();
}

// A's part of an epoch that was released waits for the next one of the label.
static void with_warm(void) {
  joined_cells();
  model_as(A, release_epoch);
  blocks[0] = NULL;
  blocks[1] = NULL;
  epoch = open_cells();
}
// A survivor lies in an earlier cell of the part.
static void with_warm_and_survivor(void) {
  joined_cells();
  model_as(A, close_epoch);
  epoch = open_cells();
  allocate_in_epoch(A, 2, 1, BLOCK_BYTES);
}
static void allocate_in_warm(unsigned index) {
  next = open_cells();
  blocks[index] = tslab_epoch_malloc(next, BLOCK_BYTES);
  EXPECT(blocks[index] != NULL && tslab_epoch_of(blocks[index]) == next);
  EXPECT(tslab_epoch_close(next).objects == 1);
}
static void release_and_allocate(void) {
  blocks[2] = NULL;
  EXPECT(tslab_epoch_release(epoch) == 0);
  allocate_in_warm(3);
}
// Its part stays warm only where the other block was freed before.
static void close_and_allocate(void) {
  free_block(0);
  close_counted();
  allocate_in_warm(3);
  free_block(3);
}
static void free_leave_and_allocate_a(void) {
  free_block(0);
  free_block(1);
  leave(A);
  allocate_in_warm(3);
  free_block(3);
}
static void leave_and_allocate_a(void) {
  leave(A);
  allocate_in_warm(3);
  free_block(3);
}

static void a_inside_shared(void) {
  tslab_epoch_options options = {.size = sizeof options, .place = TSLAB_PLACE_SHARED};
  warm_all();
  epoch = tslab_epoch_open("shared", &options);
  allocate_in_epoch(A, 0, 2, BLOCK_BYTES);
  model_as(A, enter_a);
}

// A guest in the memory of an open host, where A has a block.
static tslab_epoch host;

static void with_host(void) {
  const struct tsl_closed lost = {.held_bytes = 1 << 23, .pinned_bytes = 1 << 23, .survivors = 1};
  uint32_t label = tsl_label_intern("guest");
  with_parts();
  host = epoch;
  for (unsigned i = 0; i <= TSL_HISTORY_FEW; i++) {
    tsl_history_closed(label, &lost);
    tsl_history_freed(label);
  }
  tslab_epoch_options options = {.size = sizeof options, .parent = host};
  for (unsigned i = 1; i < TSL_REGULARS_OFTEN; i++)
    tslab_epoch_close(tslab_epoch_open("guest", &options));
  epoch = tslab_epoch_open("guest", &options);
}
static void a_with_host(void) {
  with_host();
  allocate_in_epoch(A, 0, 1, BLOCK_BYTES);
  EXPECT(tslab_epoch_of(blocks[0]) == host);
}
static void a_with_empty_part(void) {
  a_with_host();
  model_as(A, free_0);
}
static void a_inside_guest(void) {
  a_with_host();
  model_as(A, enter_a);
}
static void close_host(void) { EXPECT(tslab_epoch_close(host).error == 0); }
// The slot of the host goes to an epoch that nobody entered.
static void end_both_and_open(void) {
  close_host();
  close_epoch();
  next = open_slabs();
}
static void stay_apart_a(void) {
  if (tslab_scope_enter(&scopes[A], epoch) != 0) return;
  void *block = tslab_malloc(BLOCK_BYTES);
  EXPECT(block != NULL && (next == 0 || tslab_epoch_of(block) != next));
  tslab_free(block);
  leave_a();
}
static void end_opened(void) {
  tslab_epoch_stats stats = {.size = sizeof stats};
  EXPECT(tslab_epoch_get_stats(next, &stats) == 0 && stats.threads == 0);
  free_rest();
  epoch = next;
  close_epoch();
}
static void release_host(void) { EXPECT(tslab_epoch_release(host) == 0); }
static void end_guest(void) {
  free_rest();
  close_epoch();
}

// The guest ends at the end.
#define GUEST(name_, prepare_, ...) \
  .name = (name_), .prepare = (prepare_), .threads = {__VA_ARGS__}, .finish = end_guest

#define SCENARIO(name_, prepare_, ...) \
  .name = (name_), .prepare = (prepare_), .threads = {__VA_ARGS__}, .finish = free_rest

// A allocates in the slot's next epoch at the end.
#define NEXT(name_, prepare_, ...) \
  .name = (name_), .prepare = (prepare_), .threads = {__VA_ARGS__}, .finish = end_next

// What a release ended must not be freed any more.
#define RELEASE(name_, prepare_, ...) \
  .name = (name_), .prepare = (prepare_), .threads = {__VA_ARGS__}, .finish = release_rest

const struct model_scenario scope_scenarios[] = {
    {SCENARIO("enter-close", joined, stay_a, close_epoch), .delays_depth = true},
    {SCENARIO("enter-close-no-barrier", joined, stay_a, close_epoch), .delays_depth = true,
     .fails = true},
    {SCENARIO("enter-close-fences", joined, stay_a, close_epoch), .delays_depth = true,
     .no_barrier = true},
    {SCENARIO("leave-close", a_inside, leave_a, close_epoch), .delays_depth = true},
    {SCENARIO("leave-close-no-barrier", a_inside, leave_a, close_epoch), .delays_depth = true,
     .fails = true},
    {SCENARIO("enter-close-cells", joined_cells, stay_and_free_a, close_epoch),
     .delays_depth = true},
    {SCENARIO("enter-close-3", joined, stay_a, close_epoch, stay_empty_c), .takes_long = true},
    {SCENARIO("join-close", with_parts, stay_a, close_epoch)},
    {SCENARIO("join-close-3", with_parts, stay_empty_a, close_epoch, stay_empty_c),
     .takes_long = true},
    {SCENARIO("inside-close", a_inside, allocate_and_leave_a, close_epoch, free_0)},
    {SCENARIO("inside-close-cells", a_inside_cells, allocate_and_leave_a, close_epoch, free_0)},
    {SCENARIO("free-inside-close", a_inside, free_inside_a, close_epoch, free_1)},
    {SCENARIO("free-inside-close-cells", a_inside_cells, free_inside_a, close_epoch, free_1)},
    {SCENARIO("free-close", joined_2, free_0, free_1, close_epoch)},
    {SCENARIO("free-own-close", joined_2, free_0, close_counted), .delays_depth = true},
    {SCENARIO("free-own-close-cells", joined_cells, free_0, close_counted), .delays_depth = true},
    {SCENARIO("free-own-close-no-barrier", joined_2, free_0, close_counted), .delays_depth = true,
     .fails = true},
    {SCENARIO("free-own-close-fences", joined_2, free_0, close_counted), .delays_depth = true,
     .no_barrier = true},
    {SCENARIO("exit-close", a_inside, exit_a, close_epoch, free_0), .delays_depth = true},
    {SCENARIO("exit-close-cells", a_inside_cells, exit_a, close_epoch, free_0)},
    {SCENARIO("leave-leave-close", a_and_b_inside, leave_a, leave_b, close_epoch)},
    {SCENARIO("two-closers", joined, stay_a, close_epoch, close_epoch)},
    {SCENARIO("share-close", a_inside_shared, allocate_and_leave_a, close_epoch, free_0)},
    {GUEST("guest-enter-close-host", a_with_host, stay_a, close_host), .delays_depth = true},
    {GUEST("guest-enter-close-host-no-barrier", a_with_host, stay_a, close_host),
     .delays_depth = true, .fails = true},
    {GUEST("guest-join-close-host", with_host, stay_a, close_host)},
    {GUEST("guest-inside-close-host", a_inside_guest, allocate_and_leave_a, close_host, free_0)},
    {.name = "guest-enter-next",
     .prepare = a_with_empty_part,
     .threads = {stay_apart_a, end_both_and_open},
     .finish = end_opened,
     .delays_depth = true},
    {GUEST("guest-enter-close", a_with_host, stay_a, close_epoch, close_host)},
    {.name = "guest-enter-release-host",
     .prepare = a_with_host,
     .threads = {stay_empty_a, release_host},
     .delays_depth = true},
    {SCENARIO("warm-join-close", with_warm, stay_a, close_epoch), .delays_depth = true},
    {SCENARIO("warm-join-close-free", with_warm, stay_and_free_a, close_epoch)},
    {SCENARIO("warm-late-free", with_warm_and_survivor, release_and_allocate, free_0, free_1)},
    {SCENARIO("warm-close-free", joined_cells, close_and_allocate, free_1)},
    {RELEASE("warm-join-release", with_warm, stay_a, release_epoch), .delays_depth = true},
    {SCENARIO("warm-leave-close", a_inside_cells, free_leave_and_allocate_a, close_epoch)},
    {RELEASE("warm-leave-release", a_inside_cells, leave_and_allocate_a, release_epoch)},
    {NEXT("join-slabs-next", with_parts_cells, stay_empty_a, next_is_slabs)},
    {NEXT("join-cells-next", with_parts, stay_empty_a, next_is_cells)},
    {NEXT("join-reset-next", with_parts, enter_one_that_ends, next_is_reset)},
    {NEXT("child-next", with_parts, open_child_of_old, next_has_no_child)},
    {RELEASE("release-leave", a_inside, allocate_and_leave_a, release_epoch), .delays_depth = true},
    {RELEASE("release-leave-cells", a_inside_cells, allocate_and_leave_a, release_epoch)},
    {RELEASE("release-leave-leave", a_and_b_inside, leave_a, leave_b, release_epoch)},
    {RELEASE("release-enter", joined, stay_empty_a, release_epoch), .delays_depth = true},
    {RELEASE("release-exit", a_inside, exit_a, release_epoch)},
    {RELEASE("release-closed-leave", closed_around_a, leave_a, release_epoch)},
    {RELEASE("close-release", joined, close_epoch, release_epoch, release_epoch)},
    {RELEASE("reset-enter", joined, write_inside_a, reset_epoch), .delays_depth = true},
    {RELEASE("reset-enter-no-barrier", joined, write_inside_a, reset_epoch), .delays_depth = true,
     .fails = true},
    {RELEASE("reset-enter-cells", joined_cells, write_inside_a, reset_epoch)},
    {RELEASE("reset-join", with_parts, write_inside_a, reset_epoch)},
    {RELEASE("reset-leave", a_inside, check_inside_a, reset_epoch), .delays_depth = true},
    {RELEASE("reset-leave-cells", a_inside_cells, check_inside_a, reset_epoch)},
    {RELEASE("reset-reset", joined, stay_empty_a, reset_epoch, reset_epoch)},
    {RELEASE("reset-close", joined, stay_empty_a, reset_epoch, close_or_find_busy)},
    {RELEASE("reset-release", joined, reset_epoch, release_epoch)},
    {RELEASE("release-closed", closed_epoch, release_epoch, release_epoch)},
    {0}};
