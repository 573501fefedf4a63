#include "tslab.h"

#include "base/options.h"
#include "ends.h"
#include "epochs.h"
#include "os_fake.h"

enum { BYTES = 100, SOME = 10, MIB = 1 << 20 };

// Of tslab_epoch_stats in the first version: up to `place`.
enum { FIRST_STATS_BYTES = 104 };

// Impossible sizes, of which the compiler must not know.
static volatile size_t most = SIZE_MAX, half = SIZE_MAX / 2;

static const size_t kinds[] = {0, TSLAB_NO_CELLS};  // of first cells

static void success_keeps_errno(void) {
  tslab_scope scope;
  errno = EDOM;
  tslab_epoch epoch = epochs_open();
  void *block = epochs_alloc(epoch, BYTES);
  epochs_enter(&scope, epoch);
  block = tslab_epoch_realloc(epoch, block, 10000);
  tslab_free(block);
  epochs_leave(&scope);
  epochs_close(epoch, 0);
  CHECK_EQ(errno, EDOM);
}

static void texts_are_copied(void) {
  tslab_epoch epoch = epochs_open();
  char text[] = "a text", whole[300], *copies[5];
  memset(whole, 'x', sizeof whole);
  whole[sizeof whole - 1] = '\0';
  copies[0] = tslab_epoch_strdup(epoch, text);
  copies[1] = tslab_epoch_strdup(epoch, "");
  copies[2] = tslab_epoch_strndup(epoch, text, 3);
  copies[3] = tslab_epoch_strndup(epoch, text, SIZE_MAX);
  copies[4] = tslab_epoch_strndup(epoch, whole, 0);
  text[0] = 'A';
  CHECK(strcmp(copies[0], "a text") == 0 && strcmp(copies[1], "") == 0);
  CHECK(strcmp(copies[2], "a t") == 0 && strcmp(copies[3], "a text") == 0);
  CHECK(strcmp(copies[4], "") == 0);
  for (int i = 0; i < 5; i++) {
    CHECK_EQ(tslab_epoch_of(copies[i]), epoch);
    tslab_free(copies[i]);
  }
  memset(whole, 'y', sizeof whole);  // no 0 anywhere
  char *first = tslab_epoch_strndup(epoch, whole, sizeof whole);
  CHECK_EQ(strlen(first), sizeof whole);
  tslab_free(first);
  epochs_close(epoch, 0);
}

static void check_allocations_refused(tslab_epoch epoch, int error) {
  void *block = tslab_malloc(BYTES);
  CHECK_REFUSED(tslab_epoch_malloc(epoch, BYTES), error);
  CHECK_REFUSED(tslab_epoch_calloc(epoch, 3, BYTES), error);
  CHECK_REFUSED(tslab_epoch_aligned_alloc(epoch, 64, BYTES), error);
  CHECK_REFUSED(tslab_epoch_malloc(epoch, MIB), error);
  CHECK_REFUSED(tslab_epoch_strdup(epoch, "text"), error);
  CHECK_REFUSED(tslab_epoch_strndup(epoch, "text", 2), error);
  CHECK_REFUSED(tslab_epoch_realloc(epoch, NULL, BYTES), error);
  memset(block, 7, BYTES);
  CHECK_REFUSED(tslab_epoch_realloc(epoch, block, 5000), error);
  CHECK_EQ(((char *)block)[BYTES - 1], 7);
  CHECK_EQ(tslab_epoch_of(block), TSLAB_DEFAULT);
  tslab_free(block);
  CHECK_EQ(tslab_epoch_current(), TSLAB_DEFAULT);
}

// Who is in the epoch gets the same answers by its id as who is not; only malloc goes on there.
static void the_id_of_the_epoch_that_one_is_in(void) {
  tslab_scope scope;
  tslab_epoch epoch = epochs_open(), inner = EPOCHS_OPEN(.parent = epoch);
  epochs_enter(&scope, epoch);
  CHECK_EQ(tslab_epoch_of(epochs_alloc(epoch, BYTES)), epoch);
  CHECK_EQ(tslab_epoch_of(epochs_alloc(inner, BYTES)), inner);
  CHECK_EQ(tslab_epoch_of(epochs_alloc(TSLAB_DEFAULT, BYTES)), TSLAB_DEFAULT);
  CHECK_EQ(tslab_epoch_of(tslab_epoch_aligned_alloc(epoch, 4096, BYTES)), epoch);
  CHECK_EQ(tslab_epoch_of(tslab_epoch_calloc(epoch, 1, BYTES)), epoch);
  epochs_close(epoch, 0);
  CHECK_REFUSED(tslab_epoch_malloc(epoch, BYTES), ECANCELED);
  CHECK_REFUSED(tslab_epoch_calloc(epoch, 1, BYTES), ECANCELED);
  CHECK_REFUSED(tslab_epoch_aligned_alloc(epoch, 64, BYTES), ECANCELED);
  CHECK_EQ(tslab_epoch_of(tslab_malloc(BYTES)), epoch);
  epochs_leave(&scope);
  CHECK_EQ(tslab_epoch_of(epochs_alloc(TSLAB_DEFAULT, BYTES)), TSLAB_DEFAULT);
  check_allocations_refused(tsl_epoch_id(0, (uint64_t)1 << TSL_EPOCH_STATE_BITS), ESTALE);
}

static void late_allocations_are_refused_and_counted(void) {
  tslab_epoch epoch = epochs_open();
  void *survivor = epochs_alloc(epoch, BYTES);
  CHECK_EQ(epochs_stats(epoch).late, 0);
  epochs_close(epoch, 1);
  check_allocations_refused(epoch, ECANCELED);
  CHECK_EQ(epochs_stats(epoch).late, 8);
  CHECK_EQ(epochs_stats(epoch).live_objects, 1);
  tslab_free(survivor);
  check_allocations_refused(epoch, ESTALE);
  tslab_epoch later = epochs_open();
  check_allocations_refused(epoch, ESTALE);
  CHECK_EQ(epochs_stats(later).late, 0);
  check_allocations_refused(TSLAB_NO_EPOCH, ESTALE);
}

static void impossible_sizes(void) {
  tslab_epoch epoch = epochs_open();
  void *block = epochs_alloc(epoch, BYTES);
  CHECK_REFUSED(tslab_epoch_malloc(epoch, most), ENOMEM);
  CHECK_REFUSED(tslab_epoch_malloc(epoch, half + 1), ENOMEM);
  CHECK_REFUSED(tslab_epoch_calloc(epoch, half, 3), ENOMEM);
  CHECK_REFUSED(tslab_epoch_realloc(epoch, block, most), ENOMEM);
  CHECK_REFUSED(tslab_epoch_aligned_alloc(epoch, 64, most), ENOMEM);
  CHECK_REFUSED(tslab_epoch_aligned_alloc(epoch, 48, 1), EINVAL);
  CHECK_REFUSED(tslab_epoch_aligned_alloc(epoch, 0, 1), EINVAL);
  CHECK_REFUSED(tslab_epoch_aligned_alloc(epoch, (size_t)1 << 63, 1), ENOMEM);
  CHECK_EQ(epochs_stats(epoch).live_objects, 1);
  epochs_free(block, BYTES);
  epochs_close(epoch, 0);
  CHECK(epochs_is_over(epoch));
}

static void refused_memory_is_not_held(void) {
  tslab_epoch epoch = epochs_open();
  epochs_alloc(epoch, BYTES);
  size_t held = epochs_stats(epoch).held_bytes;
  os_fake_fail_all(OS_FAKE_COMMIT);
  while (tslab_malloc(65536) != NULL) continue;
  while (tslab_malloc(1024) != NULL) continue;
  for (size_t bytes = 8000; bytes < MIB; bytes *= 2) {
    CHECK_REFUSED(tslab_epoch_malloc(epoch, bytes), ENOMEM);
    CHECK_REFUSED(tslab_epoch_aligned_alloc(epoch, 4096, bytes), ENOMEM);
    CHECK_REFUSED(tslab_epoch_calloc(epoch, 1, bytes), ENOMEM);
  }
  CHECK_EQ(epochs_stats(epoch).held_bytes, held);
  CHECK_EQ(epochs_stats(epoch).live_objects, 1);
  CHECK_EQ(epochs_stats(epoch).scopes, 0);
}

// The last resort of every allocation: what caches hold becomes memory for any size.
static void fill_memory(void) {
  static void *filled[1 << 14];
  unsigned count = 0;
  while ((filled[count] = tslab_malloc(8000)) != NULL) count++;
  while (count != 0) tslab_free(filled[--count]);
}

static void what_caches_hold_serves(bool aligned) {
  tsl_options.reserve = (size_t)32 << 20;
  tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = TSLAB_NO_CELLS);
  epochs_alloc(epoch, BYTES);
  fill_memory();
  CHECK((aligned ? tslab_epoch_aligned_alloc(epoch, 4096, 12288)
                 : tslab_epoch_malloc(epoch, 12288)) != NULL);
}
static void what_caches_hold_serves_malloc(void) { what_caches_hold_serves(false); }
static void what_caches_hold_serves_aligned(void) { what_caches_hold_serves(true); }

static void allocations_from_anywhere(void) {
  tslab_epoch here = epochs_open(), there = epochs_open();
  tslab_scope scope;
  epochs_enter(&scope, here);
  CHECK_EQ(tslab_epoch_of(epochs_alloc(there, BYTES)), there);
  CHECK_EQ(tslab_epoch_of(epochs_alloc(here, BYTES)), here);
  CHECK_EQ(tslab_epoch_of(epochs_alloc(TSLAB_DEFAULT, BYTES)), TSLAB_DEFAULT);
  CHECK_EQ(tslab_epoch_current(), here);
  CHECK_EQ(tslab_epoch_of(tslab_malloc(BYTES)), here);
  epochs_leave(&scope);
  CHECK_EQ(epochs_stats(here).live_objects, 2);
  CHECK_EQ(epochs_stats(there).live_objects, 1);
}

static void calloc_zeroes(void) {
  for (int kind = 0; kind < 2; kind++) {
    tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = kinds[kind]);
    for (size_t bytes = 1; bytes < 500000; bytes = bytes * 3 + 1) {
      for (int again = 0; again < SOME; again++) {
        char *block = tslab_epoch_calloc(epoch, 1, bytes);
        for (size_t i = 0; i < bytes; i++) {
          if (block[i] != 0) CHECK_EQ(block[i], 0);
        }
        memset(block, 0x77, bytes);
        CHECK_EQ(tslab_epoch_of(block), epoch);
        tslab_free(block);
      }
    }
    epochs_close(epoch, 0);
  }
}

static void aligned_blocks_of_every_kind(void) {
  for (int kind = 0; kind < 2; kind++) {
    tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = kinds[kind]);
    size_t objects = 0;
    for (size_t alignment = 1; alignment <= 4 * MIB; alignment *= 2) {
      for (size_t bytes = 0; bytes < 40000; bytes = bytes * 5 + 7) {
        char *block = tslab_epoch_aligned_alloc(epoch, alignment, bytes);
        CHECK(block != NULL);
        CHECK_EQ((uintptr_t)block & (alignment - 1), 0);
        CHECK_GE(tslab_usable_size(block), bytes);
        CHECK_EQ(tslab_epoch_of(block), epoch);
        pattern_write(block, bytes, 3);
        objects++;
        if (objects % 2 == 0) tslab_free(block);
      }
    }
    CHECK_EQ(epochs_stats(epoch).live_objects, objects - objects / 2);
    CHECK_EQ(tslab_epoch_release(epoch), 0);
  }
  epochs_check_all_free();
}

static void stats_say_their_size(void) {
  tslab_epoch epoch = epochs_open();
  tslab_epoch_stats stats = {.size = sizeof stats + 8, .epoch = 77};
  CHECK_EQ(tslab_epoch_get_stats(epoch, &stats), EINVAL);
  stats.size = FIRST_STATS_BYTES - 1;
  CHECK_EQ(tslab_epoch_get_stats(epoch, &stats), EINVAL);
  stats.size = 0;
  CHECK_EQ(tslab_epoch_get_stats(epoch, &stats), EINVAL);
  stats.size = sizeof stats;
  CHECK_EQ(tslab_epoch_get_stats(TSLAB_NO_EPOCH, &stats), ESTALE);
  CHECK_EQ(stats.epoch, 77);
  CHECK_EQ(tslab_epoch_get_stats(epoch, &stats), 0);
  CHECK_EQ(stats.epoch, epoch);
}

// What programs have that were compiled with the first version.
static void fewer_fields_are_served(void) {
  tslab_epoch epoch = epochs_open();
  epochs_alloc(epoch, 100);
  tslab_epoch_stats stats = {.size = FIRST_STATS_BYTES, .peak_bytes = 77, .allocated_objects = 78};
  CHECK_EQ(tslab_epoch_get_stats(epoch, &stats), 0);
  CHECK_EQ(stats.size, FIRST_STATS_BYTES);
  CHECK_EQ(stats.place, epoch);
  CHECK_EQ(stats.live_objects, 1);
  CHECK_EQ(stats.peak_bytes, 77);
  CHECK_EQ(stats.allocated_objects, 78);
}

// Ids that the library never gave.
static void made_up_ids_are_refused(void) {
  uint64_t seed = 5;
  tslab_epoch_stats stats = {.size = sizeof stats};
  tslab_epoch epoch = epochs_open();
  for (int i = 0; i < 2000; i++) {
    tslab_epoch id = test_random(&seed) >> test_random_below(&seed, 64);
    if (id == epoch || id == TSLAB_DEFAULT) continue;
    CHECK_EQ(tslab_epoch_get_stats(id, &stats), ESTALE);
    CHECK_EQ(tslab_epoch_close(id).error, ESTALE);
    CHECK_EQ(tslab_epoch_release(id), ESTALE);
    CHECK_REFUSED(tslab_epoch_malloc(id, 1), ESTALE);
  }
  CHECK_EQ(epochs_stats(epoch).state, TSLAB_OPEN);
}

// Calls of a thread that has ended: each borrows a home.
static tslab_epoch last;
static bool has_run;

static void check_homeless(bool expected) {
  CHECK(expected);
  CHECK(tsl_heap_current == &tsl_home_empty.heap);
}

static void run(void *unused) {
  (void)unused;
  has_run = true;
}

static void live_after_the_end(void) {
  tslab_scope scope;
  last = tslab_epoch_open("last", NULL);
  check_homeless(last != TSLAB_NO_EPOCH);
  check_homeless(tslab_epoch_malloc(last, BYTES) != NULL);
  check_homeless(tslab_scope_enter(&scope, last) == EPERM);
  check_homeless(tslab_epoch_defer(last, run, NULL) == 0);
  check_homeless(tslab_deferred_cancel(tslab_deferred_add(last, run, NULL)));
  check_homeless(tslab_epoch_close(last).objects == 1);
  check_homeless(has_run);
  check_homeless(tslab_epoch_release(last) == 0);
}

static void ended_threads_keep_no_home(void) {
  ends_with(live_after_the_end);
  CHECK(epochs_is_over(last));
  epochs_check_all_free();
}

int main(void) {
  RUN(success_keeps_errno);
  RUN(texts_are_copied);
  RUN(the_id_of_the_epoch_that_one_is_in);
  RUN(late_allocations_are_refused_and_counted);
  RUN(impossible_sizes);
  RUN(refused_memory_is_not_held);
  RUN(what_caches_hold_serves_malloc);
  RUN(what_caches_hold_serves_aligned);
  RUN(allocations_from_anywhere);
  RUN(calloc_zeroes);
  RUN(aligned_blocks_of_every_kind);
  RUN(stats_say_their_size);
  RUN(fewer_fields_are_served);
  RUN(made_up_ids_are_refused);
  RUN(ended_threads_keep_no_home);
  return test_status();
}
