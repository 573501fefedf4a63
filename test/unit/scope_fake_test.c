#include "epoch/scope.h"

#include "base/options.h"
#include "epochs.h"
#include "heap/valid.h"
#include "os_fake.h"

enum { DEPTH = 300, BYTES = 100 };

static void everybody_begins_in_the_default_epoch(void) {
  CHECK_EQ(tslab_epoch_current(), TSLAB_DEFAULT);
  CHECK_EQ(tslab_epoch_of(tslab_malloc(BYTES)), TSLAB_DEFAULT);
  CHECK_EQ(tslab_epoch_current(), TSLAB_DEFAULT);
}

// The fake has no barrier.
static void scopes_pay_for_a_fence(void) {
  CHECK(!tsl_scope_fences);
  epochs_open();
  CHECK(tsl_scope_fences);
}

static void plain_allocations_land_in_the_epoch(void) {
  static const size_t sizes[] = {0, 1, 1000, 5000, 9000, 40000, 3 << 20};
  tslab_epoch epoch = epochs_open();
  tslab_scope scope;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    epochs_enter(&scope, epoch);
    CHECK_EQ(scope.epoch, epoch);
    void *block = tslab_malloc(sizes[i]);
    CHECK_EQ(tslab_epoch_of(block), epoch);
    epochs_leave(&scope);
    CHECK_EQ(tslab_epoch_current(), TSLAB_DEFAULT);
    CHECK_EQ(tslab_epoch_of(tslab_malloc(sizes[i])), TSLAB_DEFAULT);
    CHECK_EQ(tslab_epoch_of(block), epoch);
    tslab_free(block);
  }
  epochs_close(epoch, 0);
  CHECK(epochs_is_over(epoch));
}

static void scopes_nest_to_any_depth(void) {
  static tslab_scope scopes[DEPTH];
  tslab_epoch epochs[] = {TSLAB_DEFAULT, epochs_open(), epochs_open()};
  unsigned stays[3] = {0};
  for (int i = 0; i < DEPTH; i++) {
    epochs_enter(&scopes[i], epochs[i * i % 7 % 3]);
    stays[i * i % 7 % 3]++;
  }
  CHECK_EQ(epochs_stats(epochs[1]).scopes, stays[1]);
  CHECK_EQ(epochs_stats(epochs[2]).scopes, stays[2]);
  for (int i = DEPTH; i-- != 0;) {
    CHECK_EQ(tslab_epoch_current(), epochs[i * i % 7 % 3]);
    CHECK_EQ(tslab_epoch_of(tslab_malloc(BYTES)), epochs[i * i % 7 % 3]);
    epochs_leave(&scopes[i]);
  }
  CHECK_EQ(tslab_epoch_current(), TSLAB_DEFAULT);
  CHECK_EQ(epochs_stats(epochs[1]).scopes + epochs_stats(epochs[2]).scopes, 0);
}

static void visits_go_to_the_threads_own_heap(void) {
  tslab_epoch epochs[] = {EPOCHS_OPEN(.place = TSLAB_PLACE_SHARED), epochs_open()};
  for (unsigned i = 0; i < 2; i++) {
    tslab_scope scope;
    epochs_enter(&scope, epochs[i]);
    struct tsl_heap *part = tsl_heap_current;
    void *inside = epochs_alloc(epochs[i], BYTES);
    epochs_leave(&scope);
    void *outside = epochs_alloc(epochs[i], BYTES);
    CHECK_EQ(tslab_epoch_of(outside), epochs_stats(epochs[i]).place);
    CHECK_EQ(tslab_epoch_current(), TSLAB_DEFAULT);
    CHECK_EQ(part->depth, 0);
    epochs_free(inside, BYTES);
    epochs_free(outside, BYTES);
    CHECK_EQ(part->depth, 0);
    epochs_close(epochs[i], 0);
    CHECK(epochs_is_over(epochs[i]));
  }
}

// A heap in which nobody is may have been sealed by another thread, and the epoch's record may be
// that of a later one.
static void sealed_heaps_are_not_visited(void) {
  tslab_epoch ended = epochs_open();
  void *block = epochs_alloc(ended, BYTES);
  struct tsl_heap *part = tsl_scope_heap(tsl_epoch_slot(ended));
  CHECK(part != NULL);
  epochs_close(ended, 1);
  CHECK(!tsl_scope_visit_begin(part, ended));
  CHECK_EQ(part->depth, 0);
  CHECK(tslab_epoch_malloc(ended, BYTES) == NULL);
  CHECK_EQ(errno, ECANCELED);
  epochs_free(block, BYTES);
  CHECK(epochs_is_over(ended));
  epochs_check_all_free();
}

static void leaving_in_the_wrong_order_is_refused(void) {
  tsl_options.on_error = TSL_ON_ERROR_IGNORE;
  tslab_epoch one = epochs_open(), two = epochs_open();
  tslab_scope outer, inner;
  epochs_enter(&outer, one);
  epochs_enter(&inner, two);
  CHECK_EQ(tslab_scope_leave(&outer), EPERM);
  CHECK_EQ(tslab_epoch_current(), two);
  CHECK_EQ(epochs_stats(one).scopes, 1);
  CHECK_EQ(epochs_stats(two).scopes, 1);
  epochs_leave(&inner);
  epochs_leave(&outer);
  CHECK_EQ(tslab_epoch_current(), TSLAB_DEFAULT);
}

static void leaving_in_the_wrong_order_is_refused_in_one_epoch(void) {
  tsl_options.on_error = TSL_ON_ERROR_IGNORE;
  tslab_epoch epoch = epochs_open();
  tslab_scope outer, inner;
  epochs_enter(&outer, epoch);
  epochs_enter(&inner, epoch);
  CHECK_EQ(tslab_scope_leave(&outer), EPERM);
  CHECK_EQ(tslab_epoch_current(), epoch);
  CHECK_EQ(epochs_stats(epoch).scopes, 2);
  epochs_leave(&inner);
  CHECK_EQ(tslab_epoch_current(), epoch);
  epochs_leave(&outer);
  CHECK_EQ(tslab_epoch_current(), TSLAB_DEFAULT);
}

static void scopes_are_left_once(void) {
  tsl_options.on_error = TSL_ON_ERROR_IGNORE;
  tslab_scope never = {0}, scope;
  CHECK_EQ(tslab_scope_leave(&never), EPERM);
  epochs_enter(&scope, epochs_open());
  CHECK_EQ(tslab_scope_leave(&never), EPERM);
  epochs_leave(&scope);
  CHECK_EQ(tslab_scope_leave(&scope), EPERM);
  CHECK_EQ(tslab_epoch_current(), TSLAB_DEFAULT);
}

static void the_default_scope_is_a_way_out(void) {
  tsl_options.on_error = TSL_ON_ERROR_IGNORE;
  tslab_epoch epoch = epochs_open();
  tslab_scope scope, out;
  epochs_enter(&scope, epoch);
  CHECK_EQ(tslab_scope_default(&out), 0);
  CHECK_EQ(tslab_epoch_current(), TSLAB_DEFAULT);
  void *kept = tslab_malloc(BYTES);
  CHECK_EQ(tslab_scope_leave(&scope), EPERM);
  epochs_leave(&out);
  CHECK_EQ(tslab_epoch_current(), epoch);
  epochs_leave(&scope);
  CHECK_EQ(tslab_epoch_of(kept), TSLAB_DEFAULT);
  epochs_close(epoch, 0);
}

// The caller's struct, the thread and the epoch's counts are as before.
static void check_refused(tslab_epoch epoch, int error) {
  tslab_scope scope, before;
  memset(&scope, 0x5a, sizeof scope);
  before = scope;
  struct tsl_heap *current = tsl_heap_current;
  CHECK_EQ(tslab_scope_enter(&scope, epoch), error);
  CHECK(scope.epoch == before.epoch && scope.heap == before.heap);
  CHECK(scope.outer == before.outer && scope.depth == before.depth);
  CHECK(tsl_heap_current == current);
}

static void ids_of_no_open_epoch_are_refused(void) {
  tslab_epoch open = epochs_open(), closed = epochs_open(), over = epochs_open();
  tslab_scope scope;
  void *survivor = epochs_alloc(closed, BYTES);
  epochs_close(closed, 1);
  epochs_close(over, 0);
  for (int inside = 0; inside < 2; inside++) {
    check_refused(closed, ECANCELED);
    check_refused(over, ESTALE);
    check_refused(TSLAB_NO_EPOCH, ESTALE);
    check_refused(open + ((tslab_epoch)1 << TSL_EPOCH_SLOT_BITS), ESTALE);
    check_refused(1000000, ESTALE);
    check_refused((tslab_epoch)1 << TSL_EPOCH_SLOT_BITS, ESTALE);
    if (inside == 0) epochs_enter(&scope, open);
  }
  CHECK_EQ(epochs_stats(open).scopes, 1);
  epochs_leave(&scope);
  tslab_free(survivor);
  check_refused(closed, ESTALE);
}

// The heap of the slot's next epoch is the thread's as well.
static void ids_of_an_earlier_epoch_of_the_slot_are_refused(void) {
  tslab_epoch earlier = epochs_open();
  epochs_close(earlier, 0);
  tslab_epoch later = epochs_open();
  CHECK_EQ(tsl_epoch_slot(later), tsl_epoch_slot(earlier));
  void *block = epochs_alloc(later, BYTES);
  check_refused(earlier, ESTALE);
  CHECK(tsl_scope_find(later) != NULL && tsl_scope_find(earlier) == NULL);
  CHECK_EQ(epochs_stats(later).scopes, 0);
  CHECK_REFUSED(tslab_epoch_malloc(earlier, 1), ESTALE);
  epochs_close(later, 1);
  check_refused(earlier, ESTALE);
  check_refused(later, ECANCELED);
  tslab_free(block);
  CHECK(epochs_is_over(later));
}

static void a_thread_has_one_heap_in_an_epoch(void) {
  tslab_epoch epoch = epochs_open();
  tslab_scope scope, again;
  epochs_enter(&scope, epoch);
  void *heap = scope.heap;
  epochs_enter(&again, epoch);
  CHECK(again.heap == heap);
  epochs_leave(&again);
  epochs_leave(&scope);
  for (int i = 0; i < 10; i++) {
    epochs_enter(&scope, epoch);
    CHECK(scope.heap == heap);
    epochs_leave(&scope);
  }
  CHECK_EQ(epochs_stats(epoch).threads, 1);
  CHECK_EQ(tsl_region.last_heap, 2);
}

static bool is_sealed(const void *heap) {
  return tsl_load_relaxed(&((const struct tsl_part *)heap)->sealing) != 0;
}

static void leaving_seals_what_was_closed_meanwhile(void) {
  tslab_epoch epoch = epochs_open();
  tslab_scope outer, inner;
  epochs_enter(&outer, epoch);
  struct tsl_heap *heap = outer.heap;
  void *before = tslab_malloc(BYTES);
  epochs_enter(&inner, epoch);
  CHECK_EQ(tslab_epoch_close(epoch).error, 0);
  CHECK_EQ(tslab_epoch_current(), epoch);
  void *after = tslab_malloc(BYTES), *large = tslab_malloc(100000);
  CHECK_EQ(tslab_epoch_of(after), epoch);
  CHECK_EQ(tslab_epoch_of(large), epoch);
  check_refused(epoch, ECANCELED);
  epochs_leave(&inner);
  CHECK(!is_sealed(heap));
  epochs_leave(&outer);
  CHECK(is_sealed(heap));
  CHECK_EQ(heap->cells, 0);
  CHECK_EQ(heap->slabs, 0);
  tslab_free(before);
  tslab_free(large);
  CHECK(!epochs_is_over(epoch));
  tslab_free(after);
  CHECK(epochs_is_over(epoch));
  epochs_check_all_free();
}

static void leaving_an_empty_heap_ends_the_epoch(void) {
  tslab_epoch epoch = epochs_open();
  tslab_scope scope;
  epochs_enter(&scope, epoch);
  tslab_free(tslab_malloc(BYTES));
  epochs_close(epoch, 0);
  CHECK(!epochs_is_over(epoch));
  epochs_leave(&scope);
  CHECK(epochs_is_over(epoch));
  epochs_check_all_free();
}

static void leaving_ends_what_was_released_meanwhile(void) {
  tslab_epoch epoch = epochs_open();
  tslab_scope scope;
  epochs_enter(&scope, epoch);
  for (int i = 0; i < 1000; i++) CHECK(tslab_malloc(BYTES) != NULL);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  CHECK_EQ(epochs_stats(epoch).state, TSLAB_RELEASED);
  epochs_leave(&scope);
  CHECK(epochs_is_over(epoch));
  epochs_check_all_free();
}

static void large_blocks_of_who_was_inside_end_with_the_rest(void) {
  tslab_epoch epoch = epochs_open();
  tslab_scope scope;
  epochs_enter(&scope, epoch);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  CHECK(tslab_malloc(100000) != NULL);
  epochs_leave(&scope);
  CHECK(epochs_is_over(epoch));
  epochs_check_all_free();
}

static void no_memory_for_a_heap(void) {
  tslab_epoch epoch;
  tslab_scope scope, refused;
  epochs_enter(&scope, epochs_open());
  do {
    epoch = epochs_open();
    if (tsl_region.last_heap % 16 == 15) os_fake_fail_all(OS_FAKE_COMMIT);
    CHECK_LE(tsl_region.last_heap, 200);
  } while (tslab_scope_enter(&refused, epoch) == 0 && tslab_scope_leave(&refused) == 0);
  check_refused(epoch, ENOMEM);
  CHECK_REFUSED(tslab_epoch_malloc(epoch, BYTES), ENOMEM);
  CHECK_EQ(epochs_stats(epoch).threads, 0);
  os_fake_recover();
  epochs_enter(&refused, epoch);
  epochs_leave(&refused);
  epochs_leave(&scope);
}

static const tslab_epoch_options sharing = {.size = sizeof sharing, .place = TSLAB_PLACE_SHARED};

// A request of the label, whose block is freed unless `kept` is there. Returns the thread's heap in
// the label's shared epoch.
static struct tsl_heap *serve(const char *label, void **kept) {
  tslab_epoch epoch = tslab_epoch_open(label, &sharing);
  tslab_scope scope;
  epochs_enter(&scope, epoch);
  struct tsl_heap *heap = tsl_heap_current;
  void *block = tslab_malloc(BYTES);
  if (kept != NULL) *kept = block;
  if (kept == NULL) tslab_free(block);
  epochs_leave(&scope);
  epochs_close(epoch, 0);
  return heap;
}

// Serves labels until one's heap takes the place of `heap` among the thread's last ones.
static struct tsl_heap *serve_rival(const struct tsl_heap *heap, char label[2]) {
  struct tsl_heap *rival;
  do {
    label[0]++;
    rival = serve(label, NULL);
  } while (rival->epoch % TSL_HOME_PARTS != heap->epoch % TSL_HOME_PARTS);
  return rival;
}

static void labels_that_come_seldom_keep_no_cell(void) {
  char label[] = "a";
  struct tsl_heap *heap = serve("first", NULL);
  CHECK_EQ(heap->cell_count, 1);
  struct tsl_heap *rival = serve_rival(heap, label);
  CHECK_EQ(heap->cell_count, 0);
  CHECK_EQ(rival->cell_count, 1);
  CHECK(serve("first", NULL) == heap);
  CHECK_EQ(heap->cell_count, 1);
  CHECK_EQ(rival->cell_count, 0);
  CHECK(tsl_heap_valid(heap) && tsl_heap_valid(rival));
}

static void a_cell_with_a_block_stays(void) {
  char label[] = "a";
  void *block;
  struct tsl_heap *heap = serve("first", &block);
  serve_rival(heap, label);
  CHECK_EQ(heap->cell_count, 1);
  tslab_free(block);
  serve(label, NULL);
  CHECK_EQ(heap->cell_count, 1);
  serve("first", NULL);
  serve(label, NULL);
  CHECK_EQ(heap->cell_count, 0);
}

// The next block is cut there.
static void the_cell_of_who_is_inside_stays(void) {
  char label[] = "a";
  tslab_scope scope;
  struct tsl_heap *heap = serve("first", NULL);
  epochs_enter(&scope, tslab_epoch_open("first", &sharing));
  CHECK(tsl_heap_current == heap);
  serve_rival(heap, label);
  CHECK_EQ(heap->cell_count, 1);
  epochs_leave(&scope);
}

int main(void) {
  RUN(everybody_begins_in_the_default_epoch);
  RUN(scopes_pay_for_a_fence);
  RUN(plain_allocations_land_in_the_epoch);
  RUN(scopes_nest_to_any_depth);
  RUN(visits_go_to_the_threads_own_heap);
  RUN(sealed_heaps_are_not_visited);
  RUN(leaving_in_the_wrong_order_is_refused);
  RUN(leaving_in_the_wrong_order_is_refused_in_one_epoch);
  RUN(scopes_are_left_once);
  RUN(the_default_scope_is_a_way_out);
  RUN(ids_of_no_open_epoch_are_refused);
  RUN(ids_of_an_earlier_epoch_of_the_slot_are_refused);
  RUN(a_thread_has_one_heap_in_an_epoch);
  RUN(leaving_seals_what_was_closed_meanwhile);
  RUN(leaving_an_empty_heap_ends_the_epoch);
  RUN(leaving_ends_what_was_released_meanwhile);
  RUN(large_blocks_of_who_was_inside_end_with_the_rest);
  RUN(no_memory_for_a_heap);
  RUN_UNLESS_SECURE(labels_that_come_seldom_keep_no_cell);
  RUN_UNLESS_SECURE(a_cell_with_a_block_stays);
  RUN_UNLESS_SECURE(the_cell_of_who_is_inside_stays);
  return test_status();
}
