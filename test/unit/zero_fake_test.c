// Blocks of size 0 of the hardened build; other builds leave this file out.
#include "slab/zero.h"

#include <signal.h>
#include <sys/wait.h>

#include "alloc/aligned.h"
#include "alloc/malloc.h"
#include "alloc/realloc.h"
#include "alloc/standard.h"
#include "base/options.h"
#include "capture.h"
#include "os_fake.h"
#include "state.h"
#include "tslab.h"

enum { KIB = 1 << 10 };

static char *volatile nothing;

static void read_it(void) { (void)*(volatile char *)nothing; }
static void write_it(void) { *nothing = 1; }
static void free_it(void) { tsl_fast_free(nothing); }
static void free_inside(void) { tsl_fast_free(nothing + 8); }
static void free_as_one_byte(void) { tsl_fast_free_sized(nothing, 1); }

static bool faults(void (*call)(void)) {
  int status = capture_child(call);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

static bool reports(void (*call)(void), const char *text) {
  tsl_options.on_error = TSL_ON_ERROR_REPORT;
  capture_start();
  call();
  const char *said = capture_end();
  return capture_lines(said) == 1 && strstr(said, text) != NULL;
}

static void every_use_faults(void) {
  void *blocks[] = {tsl_fast_malloc(0), tsl_calloc(0, 8), tsl_calloc(8, 0), tsl_realloc(NULL, 0),
                    tsl_aligned(64, 0)};
  for (unsigned i = 0; i < sizeof blocks / sizeof *blocks; i++) {
    nothing = blocks[i];
    CHECK(nothing != NULL && faults(read_it) && faults(write_it));
    CHECK_EQ(tsl_usable(nothing), 0);
    tsl_fast_free(nothing);
  }
}

static void all_differ(void) {
  static bool seen[TSL_ZERO_BLOCKS];
  char *first = tsl_fast_malloc(0);
  uintptr_t start = (uintptr_t)first & ~(uintptr_t)(TSL_ZERO_BLOCKS * 16 - 1);
  CHECK(tsl_zero_contains(first));
  for (int i = 1; i < 2000; i++) {
    uintptr_t offset = ((uintptr_t)tsl_fast_malloc(0) - start) / 16 % TSL_ZERO_BLOCKS;
    CHECK(!seen[offset]);
    seen[offset] = true;
  }
}

static void aligned_ones(void) {
  for (size_t alignment = 1; alignment <= 64 * KIB; alignment *= 2) {
    void *one = tsl_aligned(alignment, 0), *two = tsl_aligned(alignment, 0);
    CHECK(tsl_zero_has(one) && tsl_zero_has(two) && one != two);
    CHECK_EQ(((uintptr_t)one | (uintptr_t)two) & (alignment - 1), 0);
  }
  CHECK(!tsl_zero_contains(tsl_aligned(128 * KIB, 0)));
}

static void mistakes_are_reported(void) {
  nothing = tsl_fast_malloc(0);
  CHECK(reports(free_inside, "not the beginning of a block"));
  CHECK(reports(free_as_one_byte, "its size is given as 1"));
  CHECK(reports(free_it, "free already"));
}

static void realloc_moves(void) {
  nothing = tsl_fast_malloc(0);
  char *moved = tsl_realloc(nothing, 100);
  CHECK(moved != NULL && moved != nothing && !tsl_zero_has(nothing));
  memset(moved, 1, 100);
  nothing = tsl_fast_malloc(0);
  char *again = tslab_epoch_realloc(TSLAB_DEFAULT, nothing, 100);
  CHECK(again != NULL && !tsl_zero_has(nothing));
}

static void they_belong_to_the_default_epoch(void) {
  tslab_block_info info = {.size = sizeof info};
  nothing = tslab_malloc(0);
  CHECK_EQ(tslab_epoch_of(nothing), TSLAB_DEFAULT);
  CHECK_EQ(tslab_block_get_info(nothing, &info), 0);
  CHECK(info.usable_bytes == 0 && info.live == 1);
  tslab_free(nothing);
  CHECK_EQ(tslab_epoch_of(nothing), TSLAB_NO_EPOCH);
}

// In a declared epoch, which counts its blocks, when all are taken, and without address space.
static void otherwise_blocks_are_ordinary(void) {
  tslab_epoch epoch = tslab_epoch_open("request", NULL);
  CHECK_EQ(tsl_usable(tslab_epoch_malloc(epoch, 0)), 1);
  for (int i = 0; i < TSL_ZERO_BLOCKS; i++) CHECK(tsl_zero_has(tsl_fast_malloc(0)));
  CHECK_EQ(tsl_usable(tsl_fast_malloc(0)), 1);
}

static void without_address_space(void) {
  os_fake.forbids_nothing = true;
  CHECK_EQ(tsl_usable(tsl_fast_malloc(0)), 1);
  os_fake.forbids_nothing = false;
  CHECK_EQ(tsl_usable(tsl_fast_malloc(0)), 0);
}

int main(void) {
  RUN(every_use_faults);
  RUN(all_differ);
  RUN(aligned_ones);
  RUN(mistakes_are_reported);
  RUN(realloc_moves);
  RUN(they_belong_to_the_default_epoch);
  RUN(otherwise_blocks_are_ordinary);
  RUN(without_address_space);
  return test_status();
}
