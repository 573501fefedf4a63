#include "alloc/helper.h"

#include <pthread.h>

#include "alloc/malloc.h"
#include "base/options.h"
#include "capture.h"
#include "memory/limit.h"
#include "memory/purge.h"
#include "memory/segment.h"
#include "os_fake.h"
#include "state.h"
#include "state/change.h"
#include "tell/rows.h"
#include "tslab.h"
#include "upkeep/reports.h"

enum { MIB = 1 << 20, PATIENCE_MS = 5000 };

// Threads are made here, or refused.
static unsigned attempts;
static bool is_refusing;
static uint32_t epoch_of_attempt = UINT32_MAX;

int __real_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
int __wrap_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument) {
  attempts++;
  epoch_of_attempt = tsl_heap_current->epoch;
  return is_refusing ? EAGAIN : __real_pthread_create(thread, attributes, run, argument);
}

static uint64_t naps(void) { return tsl_load_relaxed(&os_fake.calls[OS_FAKE_SLEEP]); }

static bool helper_naps_after(uint64_t before) {
  for (int ms = 0; naps() == before && ms < PATIENCE_MS; ms++) usleep(1000);
  return naps() != before;
}

static bool helper_naps(void) { return helper_naps_after(naps()); }

// Waits until the helper has brought the dirty units down to `units`.
static bool dirty_sinks_to(size_t units) {
  for (int ms = 0; tsl_units_dirty() > units && ms < PATIENCE_MS; ms++) usleep(1000);
  return tsl_units_dirty() <= units;
}

static bool has_ended(void) {
  for (int ms = 0; tsl_purge_has_helper() && ms < PATIENCE_MS; ms++) usleep(1000);
  return !tsl_purge_has_helper();
}

// Waits for the helper's end: a program that ends with threads is waited for by sanitizers.
static void end_helper(void) {
  tsl_store_relaxed(&tsl_options.helper, TSL_HELPER_NEVER);
  uint64_t before;
  do {
    before = naps();
    usleep(20000);
  } while (naps() != before);
}

static void none_unless_asked_for(void) {
  tsl_fast_free(tsl_fast_malloc(3 * MIB));
  usleep(20000);
  CHECK_EQ(naps(), 0);
}

static void gives_back_while_the_program_idles(void) {
  tsl_options.helper = TSL_HELPER_ALWAYS;
  tsl_options.purge_delay_ms = 5;
  void *block = tsl_fast_malloc(8 * MIB);
  (void)tsl_fast_malloc(100);
  tsl_fast_free(block);
  CHECK(helper_naps());
  CHECK(dirty_sinks_to(0));
  end_helper();
}

// 1,024 units: 64, 256 and 352 in the first windows, then of a quiet program 264, 64 and the last
// 24.
static void wakes_when_a_window_ends(void) {
  enum { UNITS = 1024, WINDOWS = 6, DELAY_MS = 100, LATE_MS = 20 };
  tsl_options.helper = TSL_HELPER_ALWAYS;
  tsl_options.purge_delay_ms = DELAY_MS;
  tsl_options.detain_ms = 0;
  void *block = tsl_fast_malloc(UNITS * TSL_UNIT_BYTES);
  (void)tsl_fast_malloc(100);
  tsl_fast_free(block);
  CHECK(dirty_sinks_to(0));
  end_helper();
  uint64_t first_ms = tsl_load_relaxed(&os_fake.first_purged_ms);
  uint64_t last_ms = tsl_load_relaxed(&os_fake.last_purged_ms);
  CHECK_LE(last_ms - first_ms, (WINDOWS - 1) * DELAY_MS + LATE_MS);
}

static void purges_at_once_when_told(void) {
  tsl_options.helper = TSL_HELPER_ALWAYS;
  tsl_options.purge_delay_ms = 3600000;
  void *block = tsl_fast_malloc(8 * MIB);
  (void)tsl_fast_malloc(100);
  CHECK(helper_naps());
  tsl_fast_free(block);
  tsl_purge_now();
  CHECK(dirty_sinks_to(0));
  CHECK_EQ(os_fake.calls[OS_FAKE_WAKE], 1);
  end_helper();
}

// No thread of the program comes by meanwhile; the window lasts an hour.
static void follows_a_request(void) {
  tsl_options.helper = TSL_HELPER_ALWAYS;
  tsl_options.purge_delay_ms = 3600000;
  (void)tsl_fast_malloc(100);
  tsl_report_start();
  CHECK(helper_naps());
  uint64_t before = naps();
  tsl_store_relaxed(&((struct tsl_control_row *)TSL_ROW(control, 0))->purge_request, 9);
  const struct tsl_process_row *process = TSL_ROW(process, 0);
  while (tsl_load_acquire(&process->purge_request) != 9)  // pairs: mirror
    CHECK_LE(naps() - before, 1000);
  end_helper();
}

enum { SAVED_MS = 20000, WINDOW_MS = 10 };

// The helper has done so many steps, or more, each of 10 ms of a processor.
static void work_for(unsigned steps) {
  tsl_options.helper = TSL_HELPER_ALWAYS;
  tsl_options.purge_delay_ms = WINDOW_MS;
  os_fake.now_ms = SAVED_MS;
  os_fake.used_ns = 10000000;
  (void)tsl_fast_malloc(100);
  while (naps() < steps) usleep(1000);
}

static void end_work(void) {
  tsl_store_relaxed(&os_fake.used_ns, 0);
  end_helper();
}

// HE2: a step of 10 ms of a processor costs a second, of which twenty are saved up.
static void uses_a_hundredth_of_a_processor(void) {
  enum { STEPS = 40 };
  work_for(STEPS);
  CHECK_GE(tsl_load_relaxed(&os_fake.now_ms), SAVED_MS + (STEPS - 22) * 1000);
  end_work();
}

// HE2: near the soft limit the same step costs a tenth of that.
static void uses_a_tenth_near_the_soft_limit(void) {
  enum { STEPS = 240 };
  tsl_options.soft_limit = 1;
  work_for(STEPS);
  uint64_t now_ms = tsl_load_relaxed(&os_fake.now_ms), naps_now = naps();
  CHECK_GE(now_ms, SAVED_MS + (STEPS - 202) * 100);
  CHECK_LE(now_ms, SAVED_MS + (naps_now + 1) * (100 + WINDOW_MS));
  end_work();
}

// HE2: so it does while the program rests.
static void uses_a_tenth_while_the_program_rests(void) {
  enum { STEPS = 240 };
  os_fake.is_resting = true;
  work_for(STEPS);
  uint64_t now_ms = tsl_load_relaxed(&os_fake.now_ms), naps_now = naps();
  CHECK_GE(now_ms, SAVED_MS + (STEPS - 202) * 100);
  CHECK_LE(now_ms, SAVED_MS + (naps_now + 1) * (100 + WINDOW_MS));
  end_work();
}

// HE2: and for all that its thread uses, its waking and waiting among it.
static void pays_for_its_rests(void) {
  enum { STEPS = 240, PRICE = 10, STEP_MS = 100 };
  os_fake.is_resting = true;
  work_for(STEPS);
  uint64_t used_ms = tsl_os_process_used_ns() / 1000000;
  CHECK_GE(tsl_load_relaxed(&os_fake.now_ms) + (uint64_t)3 * STEP_MS, used_ms * PRICE);
  end_work();
}

static void less_is_enough_near_the_soft_limit(void) {
  tsl_fast_free(tsl_fast_malloc(3 * MIB));
  tsl_options.helper = TSL_HELPER_AUTO;
  tsl_fast_free(tsl_fast_malloc(3 * MIB));
  CHECK_EQ(attempts, 0);
  tsl_options.soft_limit = 1;
  tsl_fast_free(tsl_fast_malloc(3 * MIB));
  CHECK_EQ(attempts, 1);
  CHECK(helper_naps_after(0));
  end_helper();
}

static const struct os_fake_file short_of_memory[] = {
    {"/proc/pressure/memory", "some avg10=50.00 avg60=0.00 avg300=0.00 total=1\n"},
    {NULL, NULL},
};

static const struct os_fake_file at_ease[] = {
    {"/proc/pressure/memory", "some avg10=0.00 avg60=50.00 avg300=0.00 total=1\n"},
    {NULL, NULL},
};

// HE3. Of the files' two tables one is told at a time; the helper's clock runs by its naps.
static void pressure_counts_as_a_near_limit(void) {
  tsl_store_relaxed(&os_fake.files, at_ease);
  tsl_options.helper = TSL_HELPER_ALWAYS;
  tsl_options.purge_delay_ms = 3600000;
  tsl_fast_free(tsl_fast_malloc(3 * MIB));
  for (unsigned i = 0; i < 20; i++) CHECK(helper_naps() && !tsl_limit_is_near());
  CHECK_NE(tsl_units_dirty(), 0);
  tsl_store_relaxed(&os_fake.files, short_of_memory);
  CHECK(dirty_sinks_to(0));
  tsl_fast_free(tsl_fast_malloc(3 * MIB));
  CHECK(dirty_sinks_to(0));
  end_helper();
  CHECK(!tsl_limit_is_near());  // with the helper nobody looks any more
}

// HE3: also while it waits for the end of an hour's window. Some naps of a second pass unseen.
static void pressure_ends_a_long_wait(void) {
  tsl_options.helper = TSL_HELPER_ALWAYS;
  tsl_options.purge_delay_ms = 3600000;
  tsl_fast_free(tsl_fast_malloc(3 * MIB));
  CHECK(helper_naps());
  tsl_store_relaxed(&os_fake.files, short_of_memory);
  uint64_t before_ms = tsl_load_relaxed(&os_fake.now_ms);
  CHECK(dirty_sinks_to(0));
  CHECK_LE(tsl_load_relaxed(&os_fake.now_ms), before_ms + 600000);
  end_helper();
}

// HE3: where nothing can go back.
static void without_idle_memory_none_is_short(void) {
  tsl_store_relaxed(&os_fake.files, short_of_memory);
  tsl_options.helper = TSL_HELPER_ALWAYS;
  tsl_fast_free(tsl_fast_malloc(100));
  CHECK(helper_naps());
  for (unsigned i = 0; i < 20; i++) CHECK(helper_naps() && !tsl_limit_is_near());
  end_helper();
}

static void a_child_is_not_short_of_memory(void) {
  tsl_limit_set_pressed(true);
  tsl_helper_after_fork();
  CHECK(!tsl_limit_is_near());
}

enum { LABELS = 12, LABEL_BLOCKS = 10000, BLOCK_BYTES = 512, SLAB_BLOCKS = 128 };

static void enter_label(tslab_scope *scope, unsigned label) {
  const tslab_epoch_options shared = {.size = sizeof shared, .place = TSLAB_PLACE_SHARED};
  char name[] = {(char)('a' + label), 0};
  CHECK_EQ(tslab_scope_enter(scope, tslab_epoch_open(name, &shared)), 0);
  tsl_heap_current->cell_class = false;
}

// Of each label the thread has less than a helper is born for.
static void what_is_free_of_all_labels_counts(void) {
  static void *blocks[LABELS][LABEL_BLOCKS];
  tslab_scope scope;
  os_fake.has_barrier = true;
  (void)tsl_fast_malloc(100);
  tsl_options.helper = TSL_HELPER_AUTO;
  for (unsigned label = 0; label < LABELS; label++) {
    enter_label(&scope, label);
    for (unsigned i = 0; i < LABEL_BLOCKS; i++) blocks[label][i] = tsl_fast_malloc(BLOCK_BYTES);
    CHECK_EQ(tslab_scope_leave(&scope), 0);
  }
  for (unsigned label = 0; label < LABELS; label++) {
    CHECK(attempts == 0 || label > LABELS / 2);
    enter_label(&scope, label);
    for (unsigned i = 0; i < LABEL_BLOCKS; i++)
      if (i % SLAB_BLOCKS != 0) tsl_fast_free(blocks[label][i]);
    CHECK_EQ(tslab_scope_leave(&scope), 0);
  }
  CHECK_GE(attempts, 1);
  end_helper();
}

// HE2: what one step took has a bound as a debt, or nothing would go back for long.
static void waits_ten_seconds_at_most(void) {
  enum { STEPS = 20, MOST_WAIT_MS = 10000 };
  tsl_options.helper = TSL_HELPER_ALWAYS;
  tsl_options.purge_delay_ms = 1;
  os_fake.now_ms = SAVED_MS;
  os_fake.used_ns = UINT64_C(10000000000);
  (void)tsl_fast_malloc(100);
  while (naps() < STEPS) usleep(1000);
  // The helper goes on between two looks: here the naps are looked at first, there the clock.
  uint64_t before = naps(), before_ms = tsl_load_relaxed(&os_fake.now_ms);
  while (naps() < before + STEPS) usleep(1000);
  uint64_t after_ms = tsl_load_relaxed(&os_fake.now_ms), steps = naps() - before + 1;
  CHECK_LE(after_ms - before_ms, (steps + 1) * MOST_WAIT_MS);
  tsl_store_relaxed(&os_fake.used_ns, 0);
  end_helper();
}

// Whoever frees last sees the helper end, or the helper sees what was freed.
static void ends_when_nothing_is_left(void) {
  (void)tsl_fast_malloc(100);
  tsl_options.helper = TSL_HELPER_AUTO;
  tsl_options.purge_delay_ms = 10;
  tsl_options.detain_ms = 0;
  for (int i = 0; i < 20; i++) {
    tsl_fast_free(tsl_fast_malloc(40 * MIB));
    CHECK(dirty_sinks_to(0));
  }
  CHECK(has_ended());
}

// HE2: it is away for ten seconds after each step.
static void goes_on_after_a_debt(void) {
  (void)tsl_fast_malloc(100);
  tsl_options.helper = TSL_HELPER_AUTO;
  tsl_options.purge_delay_ms = 10;
  tsl_options.detain_ms = 0;
  os_fake.used_ns = UINT64_C(10000000000);
  tsl_fast_free(tsl_fast_malloc(40 * MIB));
  CHECK(dirty_sinks_to(0));
  tsl_store_relaxed(&os_fake.used_ns, 0);
  CHECK(has_ended());
}

static void no_end_of_an_epoch_is_missed(void) {
  (void)tsl_fast_malloc(100);
  tsl_options.helper = TSL_HELPER_AUTO;
  tsl_options.purge_delay_ms = 10;
  tsl_options.detain_ms = 0;
  for (int i = 0; i < 20; i++) {
    tslab_epoch epoch = tslab_epoch_open("test", NULL);
    CHECK(tslab_epoch_malloc(epoch, 40 * MIB) != NULL);
    CHECK_EQ(tslab_epoch_release(epoch), 0);
    CHECK(dirty_sinks_to(0));
  }
  CHECK(has_ended());
}

enum { SMALL_EPOCHS = 1000, SMALL_BLOCKS = 30 };

// An epoch of one slab, in which the first block lives on and all others are free.
static tslab_epoch small_epoch(void) {
  const tslab_epoch_options own = {.size = sizeof own, .place = TSLAB_PLACE_OWN};
  tslab_epoch epoch = tslab_epoch_open("small", &own);
  void *blocks[SMALL_BLOCKS];
  tslab_scope scope;
  CHECK_EQ(tslab_scope_enter(&scope, epoch), 0);
  tsl_heap_current->cell_class = false;
  for (unsigned i = 0; i < SMALL_BLOCKS; i++) blocks[i] = tsl_fast_malloc(1000);
  for (unsigned i = 1; i < SMALL_BLOCKS; i++) tsl_fast_free(blocks[i]);
  CHECK_EQ(tslab_scope_leave(&scope), 0);
  return epoch;
}

// What its survivor pins is dead memory. Of the helpers before it each was refused.
static void the_end_of_one_small_epoch_is_enough(void) {
  static tslab_epoch epochs[SMALL_EPOCHS];
  os_fake.has_barrier = true;
  is_refusing = true;
  (void)tsl_fast_malloc(100);
  tsl_options.helper = TSL_HELPER_AUTO;
  for (unsigned i = 0; i < SMALL_EPOCHS; i++) epochs[i] = small_epoch();
  for (unsigned i = 0; i + 1 < SMALL_EPOCHS; i++) tslab_epoch_close(epochs[i]);
  CHECK_EQ(attempts, 1);
  os_fake.now_ms += 60000;
  is_refusing = false;
  CHECK_EQ(tslab_epoch_close(epochs[SMALL_EPOCHS - 1]).objects, 1);
  CHECK_EQ(attempts, 2);
  end_helper();
}

// Of a thousand that one thread ends in a row few stay warm: the last one calls the helper, where
// no slow path does before.
static void the_end_of_many_small_epochs_is_enough(void) {
  static tslab_epoch epochs[SMALL_EPOCHS];
  os_fake.has_barrier = true;
  is_refusing = true;
  (void)tsl_fast_malloc(100);
  for (unsigned i = 0; i < SMALL_EPOCHS; i++) {
    epochs[i] = tslab_epoch_open("small", NULL);
    CHECK(tslab_epoch_malloc(epochs[i], 60000) != NULL);
  }
  tsl_options.helper = TSL_HELPER_AUTO;
  for (unsigned i = 0; i + 1 < SMALL_EPOCHS; i++) CHECK_EQ(tslab_epoch_release(epochs[i]), 0);
  CHECK_EQ(attempts, 1);
  os_fake.now_ms += 60000;
  is_refusing = false;
  CHECK_EQ(tslab_epoch_release(epochs[SMALL_EPOCHS - 1]), 0);
  CHECK_EQ(attempts, 2);
  end_helper();
}

static void refused_twice_it_is_said_once(void) {
  (void)tsl_fast_malloc(100);
  is_refusing = true;
  tsl_options.helper = TSL_HELPER_ALWAYS;
  tsl_options.verbose = 1;
  capture_start();
  for (unsigned i = 0; i < 2; i++) {
    os_fake.now_ms += 60001;
    tsl_purge_call_helper(0);
  }
  CHECK_EQ(capture_lines(capture_end()), 1);
  CHECK_EQ(attempts, 2);
}

static void ends_and_starts_by_option(void) {
  tsl_options.helper = TSL_HELPER_ALWAYS;
  tsl_options.purge_delay_ms = 1;
  (void)tsl_fast_malloc(100);
  CHECK(helper_naps());
  end_helper();
  tsl_store_relaxed(&tsl_options.helper, TSL_HELPER_ALWAYS);
  tsl_purge_call_helper(0);
  tsl_purge_call_helper(0);
  CHECK(helper_naps());
  end_helper();
}

static void starting_keeps_errno(void) {
  tsl_options.helper = TSL_HELPER_ALWAYS;
  errno = EDOM;
  (void)tsl_fast_malloc(100);
  CHECK_EQ(errno, EDOM);
  end_helper();
}

static void failing_to_start_keeps_errno(void) {
  (void)tsl_fast_malloc(100);
  is_refusing = true;
  tsl_options.helper = TSL_HELPER_ALWAYS;
  errno = EDOM;
  tsl_purge_call_helper(0);
  CHECK_EQ(errno, EDOM);
  CHECK_EQ(attempts, 1);
}

static void tries_again_a_minute_after_a_refusal(void) {
  is_refusing = true;
  tsl_options.helper = TSL_HELPER_ALWAYS;
  tsl_options.purge_delay_ms = 1;
  for (int i = 0; i < 100; i++) {
    os_fake.now_ms += 599;
    tsl_purge_call_helper(0);
    (void)tsl_fast_malloc(40000);
  }
  CHECK_EQ(attempts, 1);
  is_refusing = false;
  os_fake.now_ms += 2000;
  tsl_purge_call_helper(0);
  CHECK_EQ(attempts, 2);
  CHECK(helper_naps());
  end_helper();
}

// What the C library allocates for the thread must not outlive the program's epoch.
static void is_made_in_the_default_epoch(void) {
  tslab_scope scope;
  tslab_epoch epoch = tslab_epoch_open("entered", NULL);
  CHECK_EQ(tslab_scope_enter(&scope, epoch), 0);
  CHECK(tsl_heap_current->epoch != 0);
  tsl_options.helper = TSL_HELPER_ALWAYS;
  tsl_purge_call_helper(0);
  CHECK_EQ(attempts, 1);
  CHECK_EQ(epoch_of_attempt, 0);
  CHECK(tsl_heap_current->epoch != 0);
  CHECK_EQ(tslab_scope_leave(&scope), 0);
  end_helper();
}

// Creating a thread allocates: not where lists are half changed, and not under a lock.
static void is_not_made_in_the_middle(void) {
  (void)tsl_fast_malloc(100);
  tsl_options.helper = TSL_HELPER_ALWAYS;
  struct tsl_change change = tsl_change_begin(tsl_heap_current->home);
  tsl_purge_call_helper(0);
  tsl_change_end(change);
  tsl_busy_begin();
  tsl_purge_call_helper(0);
  tsl_busy_end();
  CHECK_EQ(attempts, 0);
  tsl_purge_call_helper(0);
  CHECK_EQ(attempts, 1);
  end_helper();
}

int main(void) {
  RUN(none_unless_asked_for);
  RUN(gives_back_while_the_program_idles);
  RUN_UNLESS_SECURE(wakes_when_a_window_ends);
  RUN(purges_at_once_when_told);
  RUN(follows_a_request);
  RUN(uses_a_hundredth_of_a_processor);
  RUN(uses_a_tenth_near_the_soft_limit);
  RUN(uses_a_tenth_while_the_program_rests);
  RUN(pays_for_its_rests);
  RUN(less_is_enough_near_the_soft_limit);
  RUN(pressure_counts_as_a_near_limit);
  RUN(pressure_ends_a_long_wait);
  RUN(without_idle_memory_none_is_short);
  RUN(a_child_is_not_short_of_memory);
  RUN_UNLESS_SECURE(what_is_free_of_all_labels_counts);
  RUN(waits_ten_seconds_at_most);
  RUN(ends_when_nothing_is_left);
  RUN(goes_on_after_a_debt);
  RUN(no_end_of_an_epoch_is_missed);
  RUN_UNLESS_SECURE(the_end_of_one_small_epoch_is_enough);
  RUN(the_end_of_many_small_epochs_is_enough);
  RUN(refused_twice_it_is_said_once);
  RUN(ends_and_starts_by_option);
  RUN(starting_keeps_errno);
  RUN(tries_again_a_minute_after_a_refusal);
  RUN(is_made_in_the_default_epoch);
  RUN(is_not_made_in_the_middle);
  RUN(failing_to_start_keeps_errno);
  return test_status();
}
