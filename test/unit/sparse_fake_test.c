#include "upkeep/sparse.h"

#include "alloc/malloc.h"
#include "base/options.h"
#include "heap/rest.h"
#include "memory/growth.h"
#include "os_fake.h"
#include "state.h"
#include "tell/rows.h"
#include "upkeep/pool.h"
#include "upkeep/reports.h"

enum { CLASS_BYTES = 512, SLABS = 64, BLOCKS = SLABS * 128, PAGE_BLOCKS = 8, DELAY_MS = 100 };

static struct tsl_heap *home;
static unsigned char *blocks[BLOCKS];

static void open_home(void) {
  tsl_options.purge_delay_ms = DELAY_MS;
  os_fake.now_ms = 1000;
  CHECK(tsl_region_init());
  home = &tsl_home_take()->heap;
  tsl_heap_current = home;
  for (unsigned i = 0; i < BLOCKS; i++) {
    blocks[i] = tsl_fast_malloc(CLASS_BYTES);
    memset(blocks[i], 0x5a, CLASS_BYTES);
  }
}

// All but each `keep`th block goes back to its slab.
static void free_but(unsigned keep) {
  for (unsigned i = 0; i < BLOCKS; i++) {
    if (i % keep != 0) tsl_fast_free(blocks[i]);
  }
  tsl_home_rest_all(home->home);
}

static void steps(unsigned ms) {
  for (unsigned i = 0; i < ms; i++) {
    os_fake.now_ms++;
    tsl_sparse_step(home);
  }
}

static void check_kept(unsigned keep) {
  for (unsigned i = 0; i < BLOCKS; i += keep) {
    for (unsigned b = 0; b < CLASS_BYTES; b++) CHECK_EQ(blocks[i][b], 0x5a);
  }
  state_check();
}

// A block in each slab keeps one page of it.
static void dead_pages_go_back(void) {
  open_home();
  free_but(128);
  CHECK_EQ(os_fake.purged_bytes, 0);
  steps(2 * DELAY_MS);
  CHECK_EQ(os_fake.purged_bytes, SLABS * (TSL_UNIT_BYTES - OS_FAKE_LEAST_PAGE_BYTES));
  check_kept(128);
}

// To the class whose slabs they were, and to no other.
static void purges_are_told_by_class(void) {
  open_home();
  tsl_report_start();
  free_but(128);
  steps(2 * DELAY_MS);
  for (unsigned class = 0; class < TSL_CLASSES; class += 1) {
    const struct tsl_classes_row *row = TSL_ROW(classes, class);
    CHECK_EQ(row->purged_bytes, row->bytes == CLASS_BYTES ? os_fake.purged_bytes : 0);
  }
  CHECK_GE(os_fake.purged_bytes, 1);
}

static void the_last_block_keeps_its_page(void) {
  open_home();
  for (unsigned i = 0; i < BLOCKS; i++)
    if (i % 128 != 127) tsl_fast_free(blocks[i]);
  tsl_home_rest_all(home->home);
  steps(2 * DELAY_MS);
  CHECK_EQ(os_fake.purged_bytes, SLABS * (TSL_UNIT_BYTES - OS_FAKE_LEAST_PAGE_BYTES));
  for (unsigned i = 127; i < BLOCKS; i += 128) CHECK_EQ(blocks[i][0], 0x5a);
}

static void nothing_goes_back_before_the_delay(void) {
  open_home();
  free_but(128);
  steps(DELAY_MS - 2);
  CHECK_EQ(os_fake.purged_bytes, 0);
}

static void near_the_soft_limit_the_delay_is_short(void) {
  open_home();
  tsl_options.soft_limit = 1;
  free_but(128);
  steps(DELAY_MS / 2);
  CHECK_EQ(os_fake.purged_bytes, SLABS * (TSL_UNIT_BYTES - OS_FAKE_LEAST_PAGE_BYTES));
  check_kept(128);
}

static void dense_slabs_stay(void) {
  open_home();
  free_but(3);
  steps(3 * DELAY_MS);
  CHECK_EQ(os_fake.purged_bytes, 0);
}

// A quarter is sparse; a block on each page keeps all pages.
static void pages_with_blocks_stay(void) {
  open_home();
  free_but(PAGE_BLOCKS);
  steps(3 * DELAY_MS);
  CHECK_EQ(os_fake.purged_bytes, 0);
  check_kept(PAGE_BLOCKS);
}

static void purged_once(void) {
  open_home();
  free_but(128);
  steps(10 * DELAY_MS);
  CHECK_EQ(os_fake.calls[OS_FAKE_PURGE], SLABS);
}

static void free_again_but(unsigned keep, unsigned kept) {
  for (unsigned i = 0; i < BLOCKS; i += kept)
    if (i % keep != 0) tsl_fast_free(blocks[i]);
  tsl_home_rest_all(home->home);
}

// A slab thins out slowly: what dies after its first purge goes back, too, each time half is gone.
static void purged_again_by_halves(void) {
  open_home();
  free_but(4 * PAGE_BLOCKS);  // each fourth page has a block
  steps(2 * DELAY_MS);
  CHECK_EQ(os_fake.purged_bytes, SLABS * 12 * (size_t)OS_FAKE_LEAST_PAGE_BYTES);
  free_again_but(128, 4 * PAGE_BLOCKS);
  size_t first = os_fake.purged_bytes;
  steps(2 * DELAY_MS);
  CHECK_EQ(os_fake.purged_bytes - first, SLABS * (TSL_UNIT_BYTES - OS_FAKE_LEAST_PAGE_BYTES));
  size_t calls = os_fake.calls[OS_FAKE_PURGE];
  steps(10 * DELAY_MS);
  CHECK_EQ(os_fake.calls[OS_FAKE_PURGE], calls);
  check_kept(128);
}

// What was purged is handed out again, and may be purged again.
static void taken_again(void) {
  open_home();
  free_but(128);
  steps(2 * DELAY_MS);
  size_t purged = os_fake.purged_bytes;
  for (unsigned i = 0; i < BLOCKS; i++) {
    if (i % 128 == 0) continue;
    blocks[i] = tsl_fast_malloc(CLASS_BYTES);
    memset(blocks[i], 0x5a, CLASS_BYTES);
  }
  check_kept(1);
  free_but(128);
  steps(2 * DELAY_MS);
  CHECK_EQ(os_fake.purged_bytes, 2 * purged);
}

static void refused_purges_lose_nothing(void) {
  open_home();
  free_but(128);
  os_fake_fail_all(OS_FAKE_PURGE);
  steps(3 * DELAY_MS);
  CHECK_EQ(os_fake.purged_bytes, 0);
  os_fake_recover();
  check_kept(128);
}

// Each step is bounded, however long the last one is ago.
static void a_late_step_is_bounded(void) {
  open_home();
  free_but(128);
  os_fake.now_ms += DELAY_MS;
  tsl_sparse_step(home);
  CHECK_EQ(os_fake.calls[OS_FAKE_PURGE], 0);
  os_fake.now_ms += 100 * DELAY_MS;
  tsl_sparse_step(home);
  CHECK_EQ(os_fake.calls[OS_FAKE_PURGE], 40);
}

// While there is something to do the step says so, and then no more.
static void tells_of_more(void) {
  open_home();
  free_but(128);
  os_fake.now_ms++;
  CHECK(tsl_sparse_step(home));
  steps(4 * DELAY_MS);
  os_fake.now_ms++;
  CHECK(!tsl_sparse_step(home));
}

// Also between two rounds, and far from the one slab that waits.
static void one_slab_is_waited_for(void) {
  open_home();
  for (unsigned i = 1; i < 128; i++) tsl_fast_free(blocks[i]);
  tsl_home_rest_all(home->home);
  steps(10);
  for (unsigned ms = 0; ms < DELAY_MS / 2; ms++) {
    os_fake.now_ms++;
    CHECK(tsl_sparse_step(home));
  }
}

int main(void) {
  RUN_UNLESS_SECURE(dead_pages_go_back);
  RUN_UNLESS_SECURE(purges_are_told_by_class);
  RUN_UNLESS_SECURE(the_last_block_keeps_its_page);
  RUN_UNLESS_SECURE(nothing_goes_back_before_the_delay);
  RUN_UNLESS_SECURE(near_the_soft_limit_the_delay_is_short);
  RUN_UNLESS_SECURE(dense_slabs_stay);
  RUN_UNLESS_SECURE(pages_with_blocks_stay);
  RUN_UNLESS_SECURE(purged_once);
  RUN_UNLESS_SECURE(purged_again_by_halves);
  RUN_UNLESS_SECURE(taken_again);
  RUN_UNLESS_SECURE(refused_purges_lose_nothing);
  RUN_UNLESS_SECURE(a_late_step_is_bounded);
  RUN_UNLESS_SECURE(tells_of_more);
  RUN_UNLESS_SECURE(one_slab_is_waited_for);
  return test_status();
}
