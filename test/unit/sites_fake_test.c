#include "base/options.h"

// Sites of samples: how often the unwinder is asked for stacks that frame pointers do not tell.
#include <string.h>

#include "epochs.h"
#include "homes.h"
#include "os/callers.h"
#include "tell/rows.h"
#include "tell/sample.h"
#include "tell/sites.h"
#include "upkeep/reports.h"
#include "upkeep/tick.h"

enum {
  MEAN = 4096,
  BYTES = 1 << 17,  // always sampled
  TIMES = 2000,
  MOST_UNWOUND = TIMES / 16,  // of which one in 64 is
  MOST_BLIND = TSL_MOST_SITES / 2,
  LIE = 1 << 20,
};

// Code that uses the frame pointer for something else, and tables that tell where its caller is.
#if defined(__x86_64__)
#define MISLEADS TSL_HAS_UNWINDER
#define SET_FRAME_POINTER(address) __asm__ volatile("mov %0, %%rbp" : : "r"(address) : "rbp")
#else
#define MISLEADS 0
#define SET_FRAME_POINTER(address) (void)(address)
#endif

static unsigned unwound, recalled;

// The linker puts these in the place of the two functions.
unsigned __real_tsl_callers_unwind(unsigned skipped, uintptr_t *calls, unsigned most);
unsigned __wrap_tsl_callers_unwind(unsigned skipped, uintptr_t *calls, unsigned most);
unsigned __real_tsl_callers_recall(const void *frame, uintptr_t *calls, unsigned most);
unsigned __wrap_tsl_callers_recall(const void *frame, uintptr_t *calls, unsigned most);

unsigned __wrap_tsl_callers_unwind(unsigned skipped, uintptr_t *calls, unsigned most) {
  unwound++;
  return __real_tsl_callers_unwind(skipped + 1, calls, most);
}

unsigned __wrap_tsl_callers_recall(const void *frame, uintptr_t *calls, unsigned most) {
  unsigned depth = __real_tsl_callers_recall(frame, calls, most);
  recalled += depth != 0;
  return depth;
}

static void open_home(void) {
  static struct tsl_heap *mine, *other;
  tsl_options.sample_bytes = MEAN;
  homes_open((size_t)1 << 30, &mine, &other);
  os_fake.now_ms++;
  tsl_report_tick(mine->home);
  tsl_home_follow_samples(mine->home);
  CHECK_EQ(tsl_points_mean, MEAN);
}

static const struct tsl_sites_row *site(uint32_t row) { return TSL_ROW(sites, row); }

// To go by its frame pointer, `call` called it.
TSL_NOINLINE __attribute__((no_sanitize("address"))) static void alloc(uintptr_t call) {
  volatile uintptr_t frame[2] = {0, call};
  SET_FRAME_POINTER(frame);
  tslab_free(tslab_malloc(BYTES));
  frame[0] = 0;
}

TSL_NOINLINE static unsigned one_way(uintptr_t call) {
  alloc(call);
  return 1;
}

TSL_NOINLINE static unsigned another_way(uintptr_t call) {
  alloc(call);
  return 2;
}

static void alloc_often(void) {
  for (volatile unsigned i = 0; i < TIMES; i++) alloc(LIE);
}

static void what_was_unwound_once_is_recalled(void) {
  open_home();
  alloc_often();
  CHECK_EQ(site(1)->allocations, TIMES);
  CHECK_EQ(site(2)->depth, 0);
  if (MISLEADS) CHECK_EQ(unwound + recalled, TIMES);
  CHECK_GE(unwound, MISLEADS ? 2 : 1);
  CHECK_GE(MISLEADS ? MOST_UNWOUND : 1, unwound);
}

// Such a sample has the callers that frame pointers tell.
static void what_the_unwinder_allocates_is_not_unwound(void) {
  uintptr_t frames[TSL_SITE_FRAMES];
  open_home();
  struct tsl_home *home = tsl_heap_current->home;
  home->unwinding = true;
  uint32_t row = tsl_site_of(home, 0, 0);
  CHECK_EQ(unwound, 0);
  CHECK(row != 0);
  unsigned depth = tsl_callers_walk(__builtin_frame_address(0), frames, TSL_SITE_FRAMES);
  CHECK_EQ(site(row)->depth, depth + 1);
}

// Frame pointers tell the same of both.
static void recalled_stacks_are_told_apart(void) {
  open_home();
  for (volatile unsigned i = 0; i < TIMES; i++) {
    unsigned ways = one_way(LIE) + another_way(LIE);
    CHECK_EQ(ways, 3);
  }
  if (!MISLEADS) return;
  CHECK_EQ(site(1)->allocations, TIMES);
  CHECK_EQ(site(2)->allocations, TIMES);
  CHECK_EQ(site(3)->depth, 0);
  CHECK_GE(2 * MOST_UNWOUND, unwound);
}

static void fill_table(void) {
  for (volatile uintptr_t i = 1; i <= MOST_BLIND; i++) alloc(LIE + i);
  CHECK_EQ(unwound, MOST_BLIND);
  CHECK_EQ(recalled, 0);
  CHECK_EQ(site(MISLEADS ? 1 : MOST_BLIND)->allocations, MISLEADS ? MOST_BLIND : 1);
  unwound = 0;
}

// Stacks that cannot be noted as ones that mislead are taken for such.
static void with_a_full_table_new_stacks_are_recalled(void) {
  open_home();
  fill_table();
  alloc_often();
  if (!MISLEADS) return;
  CHECK_GE(MOST_UNWOUND, unwound);
  for (volatile uintptr_t i = 1; i <= TIMES; i++) alloc(2 * LIE + i);
  CHECK_GE(2 * MOST_UNWOUND, unwound);
  CHECK_EQ(unwound + recalled, 2 * TIMES);
  CHECK_EQ(site(2)->allocations, TIMES);
  CHECK_EQ(site(3)->allocations, TIMES);
  CHECK_EQ(site(4)->depth, 0);
  const struct tsl_process_row *process = TSL_ROW(process, 0);
  CHECK_EQ(process->samples_lost, 0);
}

static void the_secure_build_asks_for_nothing(void) {
  tsl_options.sample_bytes = MEAN;
  alloc_often();
  CHECK_EQ(unwound + recalled, 0);
}

int main(void) {
  RUN_UNLESS_SECURE(what_was_unwound_once_is_recalled);
  RUN_UNLESS_SECURE(what_the_unwinder_allocates_is_not_unwound);
  RUN_UNLESS_SECURE(recalled_stacks_are_told_apart);
  RUN_UNLESS_SECURE(with_a_full_table_new_stacks_are_recalled);
  if (TSL_SECURE) RUN(the_secure_build_asks_for_nothing);
  return test_status();
}
