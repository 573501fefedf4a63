#include "tslab.h"

#include <stddef.h>

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

static void check_open_refused(const char *label, const tslab_epoch_options *options, int error) {
  errno = 0;
  CHECK(tslab_epoch_open(label, options) == TSLAB_NO_EPOCH);
  CHECK_EQ(errno, error);
}

static void open_takes_labels_of_63_bytes(void) {
  char label[80];
  memset(label, 'x', sizeof label);
  check_open_refused(label, NULL, EINVAL);
  label[TSLAB_LABEL_BYTES] = '\0';
  check_open_refused(label, NULL, EINVAL);
  label[TSLAB_LABEL_BYTES - 1] = '\0';
  tslab_epoch epoch = tslab_epoch_open(label, NULL);
  CHECK(epoch != TSLAB_NO_EPOCH);
  const char *text = epochs_stats(epoch).label;
  CHECK(strcmp(text, label) == 0);
  CHECK(epochs_stats(tslab_epoch_open(label, NULL)).label == text);
  CHECK(strcmp(epochs_stats(tslab_epoch_open("", NULL)).label, "") == 0);
}

static void labels_beyond_the_last_are_other(void) {
  char label[16];
  for (unsigned i = 0; i < 4100; i++) {
    snprintf(label, sizeof label, "%u", i);
    tslab_epoch epoch = tslab_epoch_open(label, NULL);
    CHECK(strcmp(epochs_stats(epoch).label, i < 4094 ? label : "other") == 0);
    epochs_close(epoch, 0);
  }
}

static void options_say_their_size(void) {
  tslab_epoch_options options = {0};
  for (size_t size = 0; size < sizeof(size_t); size++) {
    options.size = size;
    check_open_refused("test", &options, EINVAL);
  }
  options.size = sizeof options + 1;
  check_open_refused("test", &options, EINVAL);
  options.size = sizeof options;
  CHECK(tslab_epoch_open("test", &options) != TSLAB_NO_EPOCH);
}

// An older program's struct ends earlier: what lies behind it is not looked at.
static void options_of_older_programs(void) {
  tslab_epoch parent = epochs_open();
  tslab_epoch_options options;
  memset(&options, 0xff, sizeof options);
  options.size = offsetof(tslab_epoch_options, soft_limit_bytes);
  options.parent = parent;
  tslab_epoch epoch = tslab_epoch_open("old", &options);
  CHECK(epoch != TSLAB_NO_EPOCH);
  CHECK_EQ(epochs_stats(epoch).parent, parent);
  options.size = sizeof options.size;
  epoch = tslab_epoch_open("older", &options);
  CHECK_EQ(epochs_stats(epoch).parent, TSLAB_DEFAULT);
  epochs_alloc(epoch, MIB);
}

static void options_must_make_sense(void) {
  tslab_epoch over = epochs_open(), closed = epochs_open();
  tslab_epoch_options options = {.size = sizeof options};
  epochs_alloc(closed, BYTES);
  epochs_close(over, 0);
  epochs_close(closed, 1);
  options.purge = TSLAB_PURGE_NOW + 1;
  check_open_refused("test", &options, EINVAL);
  options.purge = (enum tslab_purge) - 1;
  check_open_refused("test", &options, EINVAL);
  options.purge = TSLAB_PURGE_NOW;
  options.parent = over;
  check_open_refused("test", &options, ESTALE);
  options.parent = closed;
  check_open_refused("test", &options, ECANCELED);
  options.parent = TSLAB_NO_EPOCH;
  check_open_refused("test", &options, ESTALE);
  options.parent = TSLAB_DEFAULT;
  CHECK(tslab_epoch_open("test", &options) != TSLAB_NO_EPOCH);
}

static void open_without_memory(void) {
  os_fake_fail_all(OS_FAKE_PLACE);
  os_fake_fail_all(OS_FAKE_RESERVE);
  check_open_refused("test", NULL, ENOMEM);
  CHECK_EQ(tslab_epoch_close(1).error, ENOMEM);
  CHECK_EQ(tslab_epoch_release(1), ENOMEM);
  CHECK_REFUSED(tslab_epoch_malloc(TSLAB_DEFAULT, 1), ENOMEM);
  tslab_scope scope;
  CHECK_EQ(tslab_scope_default(&scope), ENOMEM);
  os_fake_recover();
  tslab_epoch first = epochs_open();
  os_fake_fail_all(OS_FAKE_COMMIT);
  errno = 0;
  while (tslab_epoch_open("test", NULL) != TSLAB_NO_EPOCH) continue;
  CHECK_EQ(errno, ENOMEM);
  epochs_close(first, 0);
  tslab_epoch again = epochs_open();
  CHECK(again != first && epochs_is_over(first));
}

static void slots_come_to_an_end(void) {
  tsl_options.reserve = (size_t)32 << 20;
  uint32_t count = 0;
  while (tslab_epoch_open("test", NULL) != TSLAB_NO_EPOCH) count++;
  CHECK_EQ(errno, ENOMEM);
  CHECK_EQ(count, tsl_region.limit_epochs - 1);
  CHECK_EQ(tsl_region.last_epoch, count);
}

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

// A limit refuses growth, and an epoch that has ended does not: nothing moves.
static void resizing_in_place(void) {
  tslab_epoch epoch = EPOCHS_OPEN(.hard_limit_bytes = 4 * MIB);
  char *block = epochs_alloc(epoch, 2 * MIB);
  CHECK(tslab_resize_in_place(block, MIB / 2));
  CHECK_EQ(epochs_stats(epoch).held_bytes, MIB / 2);
  CHECK(tslab_resize_in_place(block, 2 * MIB));
  CHECK_EQ(epochs_stats(epoch).held_bytes, 2 * MIB);
  CHECK(!tslab_resize_in_place(block, 5 * MIB));
  CHECK_EQ(epochs_stats(epoch).held_bytes, 2 * MIB);
  epochs_close(epoch, 1);
  CHECK(tslab_resize_in_place(block, MIB / 2));
  CHECK_EQ(epochs_stats(epoch).live_bytes, MIB / 2);
  tslab_free(block);
  CHECK(epochs_is_over(epoch));
  epochs_check_all_free();
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

static void epoch_realloc_moves_to_the_epoch(void) {
  tslab_epoch from = epochs_open(), to = epochs_open();
  char *block = epochs_alloc(from, BYTES);
  CHECK(tslab_epoch_realloc(to, block, BYTES - 10) == block);
  CHECK_EQ(tslab_epoch_of(block), from);
  block = tslab_epoch_realloc(to, block, 5000);
  CHECK(pattern_is(block, BYTES, BYTES, BYTES - 10));
  CHECK_EQ(tslab_epoch_of(block), to);
  CHECK_EQ(epochs_stats(from).live_objects, 0);
  block = tslab_epoch_realloc(TSLAB_DEFAULT, block, 300000);
  CHECK(pattern_is(block, BYTES, BYTES, BYTES - 10));
  CHECK_EQ(tslab_epoch_of(block), TSLAB_DEFAULT);
  block = tslab_epoch_realloc(from, block, 3 * MIB);
  CHECK(pattern_is(block, BYTES, BYTES, BYTES - 10));
  CHECK_EQ(tslab_epoch_of(block), from);
  block = tslab_epoch_realloc(to, block, 50);
  CHECK_EQ(tslab_epoch_of(block), to);
  CHECK(tslab_epoch_realloc(to, block, 0) == NULL);
  CHECK_EQ(epochs_stats(from).live_objects + epochs_stats(to).live_objects, 0);
  CHECK_EQ(tslab_epoch_of(tslab_epoch_realloc(to, NULL, 0)), to);
}

// From wherever the thread is.
static void realloc_keeps_the_epoch(void) {
  static const size_t sizes[] = {1, 2000, 20000, 100000, 3 * MIB, 9 * MIB, 500, 24};
  for (int kind = 0; kind < 4; kind++) {
    tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = kinds[kind % 2]), other = epochs_open();
    tslab_scope scope;
    char *block = epochs_alloc(epoch, BYTES), *plain = tslab_malloc(BYTES);
    if (kind >= 2) epochs_enter(&scope, other);
    for (int i = 0; i < 8; i++) {
      block = tslab_realloc(block, sizes[i]);
      plain = tslab_realloc(plain, sizes[i]);
      CHECK_EQ(tslab_epoch_of(block), epoch);
      CHECK_EQ(tslab_epoch_of(plain), TSLAB_DEFAULT);
      CHECK_EQ(((unsigned char *)block)[0], BYTES);
    }
    if (kind >= 2) epochs_leave(&scope);
    CHECK_EQ(epochs_stats(epoch).live_objects, 1);
    CHECK_EQ(epochs_stats(other).live_objects, 0);
  }
}

static void realloc_leaves_an_epoch_that_ended(size_t before, size_t after) {
  tslab_scope scope;
  tslab_epoch other = epochs_open();
  for (int kind = 0; kind < 4; kind++) {
    tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = kinds[kind % 2]);
    char *block = epochs_alloc(epoch, before), *wall = epochs_alloc(epoch, 100000);
    epochs_close(epoch, 2);
    if (kind >= 2) epochs_enter(&scope, other);
    char *moved = tslab_realloc(block, after);
    CHECK(moved != block && pattern_is(moved, before, (unsigned)before, before));
    CHECK_EQ(tslab_epoch_of(moved), TSLAB_DEFAULT);
    if (kind >= 2) epochs_leave(&scope);
    CHECK_EQ(epochs_stats(epoch).late, 0);
    tslab_free(wall);
    CHECK(epochs_is_over(epoch));
    tslab_free(moved);
  }
}
static void realloc_leaves_an_ended_epoch(void) {
  realloc_leaves_an_epoch_that_ended(BYTES, 3000);
  realloc_leaves_an_epoch_that_ended(30000, 70000);
  realloc_leaves_an_epoch_that_ended(100000, 300000);
}
static void moved_pages_leave_an_ended_epoch(void) {
  realloc_leaves_an_epoch_that_ended(3 * MIB, 9 * MIB);
}

// Limits: what the callback was told last.
static struct told {
  unsigned soft, hard;
  size_t held_bytes, wanted_bytes;
  void *to_free;
} told;

static void on_limit(tslab_epoch epoch, enum tslab_limit limit, size_t held_bytes,
                     size_t wanted_bytes, void *context) {
  CHECK(context == &told);
  CHECK_EQ(tslab_epoch_current(), TSLAB_DEFAULT);
  CHECK_EQ(tslab_epoch_of(tslab_malloc(BYTES)), TSLAB_DEFAULT);
  CHECK_EQ(epochs_stats(epoch).state, TSLAB_OPEN);
  *(limit == TSLAB_SOFT_LIMIT ? &told.soft : &told.hard) += 1;
  told.held_bytes = held_bytes;
  told.wanted_bytes = wanted_bytes;
  tslab_free(told.to_free);
  told.to_free = NULL;
}

static void the_soft_limit_is_told_once(void) {
  tslab_epoch epoch =
      EPOCHS_OPEN(.soft_limit_bytes = 2 * MIB, .on_limit = on_limit, .limit_context = &told);
  void *first = epochs_alloc(epoch, MIB), *second = epochs_alloc(epoch, MIB);
  CHECK_EQ(told.soft, 0);
  void *third = epochs_alloc(epoch, MIB);
  CHECK_EQ(told.soft, 1);
  CHECK_EQ(told.wanted_bytes, MIB);
  void *fourth = epochs_alloc(epoch, MIB);
  CHECK_EQ(told.soft, 1);
  tslab_free(first);
  tslab_free(second);
  tslab_free(third);
  epochs_alloc(epoch, MIB);
  CHECK_EQ(told.soft, 1);
  epochs_alloc(epoch, BYTES);
  CHECK_EQ(told.soft, 2);
  CHECK_EQ(told.hard, 0);
  tslab_free(fourth);
}

// A callback that allocates where it is told of, which is in the middle of a refill.
static void *given[2 * SOME];
static unsigned given_count, told_count;

static void allocate_in_it(tslab_epoch epoch, enum tslab_limit limit, size_t held_bytes,
                           size_t wanted_bytes, void *nothing) {
  (void)limit, (void)held_bytes, (void)wanted_bytes, (void)nothing;
  told_count++;
  for (unsigned i = 0; i < SOME && given_count < 2 * SOME; i++) {
    void *block = tslab_epoch_malloc(epoch, BYTES);
    if (block != NULL) given[given_count++] = block;
  }
}

// Nothing of what both allocated is lost, whether the limit warns or refuses.
static void callbacks_may_allocate_in_the_epoch(void) {
  for (unsigned round = 0; round < 2 * sizeof kinds / sizeof *kinds; round++) {
    size_t limit = round < 2 ? 1 : 0, hard = round < 2 ? 0 : 4 * TSL_UNIT_BYTES, count = 0;
    tslab_epoch epoch =
        EPOCHS_OPEN(.soft_limit_bytes = limit, .hard_limit_bytes = hard, .on_limit = allocate_in_it,
                    .first_cell_bytes = kinds[round % 2]);
    given_count = 0;
    told_count = 0;
    while (told_count == 0 || count < 3000) {
      if (tslab_epoch_malloc(epoch, BYTES) == NULL) break;
      count++;
    }
    CHECK_GE(told_count, 1);
    state_check();
    size_t live = count + given_count;
    CHECK_EQ(epochs_stats(epoch).live_objects, live);
    for (unsigned i = 0; i < given_count; i++) tslab_free(given[i]);
    epochs_close(epoch, count);
    CHECK_EQ(tslab_epoch_release(epoch), 0);
    epochs_check_all_free();
  }
}

static void nesting_has_an_end(void) {
  tslab_epoch root = epochs_open(), parent = root;
  for (unsigned level = 1; level < TSL_EPOCH_MOST_LEVELS; level++)
    parent = EPOCHS_OPEN(.parent = parent);
  tslab_epoch_options options = {.size = sizeof options, .parent = parent};
  check_open_refused("too deep", &options, ELOOP);
  CHECK_EQ(tslab_epoch_release(root), 0);
  CHECK(epochs_is_over(parent));
  epochs_check_all_free();
}

static void the_hard_limit_refuses(void) {
  tslab_epoch epoch =
      EPOCHS_OPEN(.hard_limit_bytes = 2 * MIB, .on_limit = on_limit, .limit_context = &told);
  void *first = epochs_alloc(epoch, MIB);
  CHECK_REFUSED(tslab_epoch_malloc(epoch, MIB + 1), ENOMEM);
  CHECK_EQ(told.hard, 1);
  CHECK_EQ(told.held_bytes, MIB);
  CHECK_EQ(told.wanted_bytes, MIB + TSL_UNIT_BYTES);
  CHECK_EQ(epochs_stats(epoch).held_bytes, MIB);
  told.to_free = first;
  CHECK(tslab_epoch_malloc(epoch, 2 * MIB) != NULL);
  CHECK_EQ(told.hard, 2);
  CHECK_REFUSED(tslab_epoch_malloc(epoch, 1), ENOMEM);
  CHECK_REFUSED(tslab_epoch_calloc(epoch, 1, 5000), ENOMEM);
  CHECK_REFUSED(tslab_epoch_aligned_alloc(epoch, 64, 64), ENOMEM);
  CHECK_EQ(epochs_stats(epoch).held_bytes, 2 * MIB);
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
  RUN(open_takes_labels_of_63_bytes);
  RUN(labels_beyond_the_last_are_other);
  RUN(options_say_their_size);
  RUN(options_of_older_programs);
  RUN(options_must_make_sense);
  RUN(open_without_memory);
  RUN(slots_come_to_an_end);
  RUN(success_keeps_errno);
  RUN(resizing_in_place);
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
  RUN(epoch_realloc_moves_to_the_epoch);
  RUN(realloc_keeps_the_epoch);
  RUN(realloc_leaves_an_ended_epoch);
  RUN(moved_pages_leave_an_ended_epoch);
  RUN(the_soft_limit_is_told_once);
  RUN(callbacks_may_allocate_in_the_epoch);
  RUN(nesting_has_an_end);
  RUN(the_hard_limit_refuses);
  RUN(stats_say_their_size);
  RUN(fewer_fields_are_served);
  RUN(made_up_ids_are_refused);
  RUN(ended_threads_keep_no_home);
  return test_status();
}
