// Every refusal of the system, one after the other: a fixed scenario runs once to count the calls
// that may fail, then again and again with each of them failing once, and with all of them failing
// from each on. What fails says so and leaves the old blocks alone; afterwards all works again.
#include <sys/mman.h>

#include "base/options.h"
#include "memory/segment.h"
#include "os_fake.h"
#include "pattern.h"
#include "state.h"
#include "threads.h"
#include "tslab.h"

enum {
  KIB = 1 << 10,
  MIB = 1 << 20,
  SLOTS = 160,
  RANDOM_STEPS = 150,
  THREAD_BLOCKS = 60,
  FIRST_CALLS = 16
};

static struct slot {
  unsigned char *address;
  size_t bytes;
  unsigned seed;
} slots[SLOTS];

static uint64_t refused_before;
static bool is_reserved;   // the region is not planned
static bool refusals_end;  // after the scenario everything must succeed

static uint64_t refusals(void) { return tsl_load_relaxed(&os_fake.refused); }

static void begin_call(void) {
  refused_before = refusals();
  errno = EDOM;
}

// What became of the call: NULL only after a refusal, errno only with NULL.
static bool succeeded(const void *block) {
  CHECK_EQ(errno, block == NULL ? ENOMEM : EDOM);
  if (block != NULL) return true;
  CHECK(!refusals_end);
  CHECK(refusals() != refused_before);
  return false;
}

static void slot_check(const struct slot *slot) {
  if (slot->address == NULL) return;
  CHECK(pattern_is(slot->address, slot->bytes, slot->seed, slot->bytes));
}

static void slot_free(struct slot *slot) {
  slot_check(slot);
  begin_call();
  tslab_free(slot->address);
  CHECK_EQ(errno, EDOM);
  *slot = (struct slot){0};
}

static void slot_fill(struct slot *slot, void *block, size_t bytes) {
  if (!succeeded(block)) return;
  *slot = (struct slot){block, bytes, (unsigned)(bytes + (size_t)(slot - slots))};
  CHECK_GE(tslab_usable_size(block), bytes);
  pattern_write(block, bytes, slot->seed);
}

static void slot_malloc(struct slot *slot, size_t bytes) {
  slot_free(slot);
  begin_call();
  slot_fill(slot, tslab_malloc(bytes), bytes);
}

static void slot_calloc(struct slot *slot, size_t bytes) {
  slot_free(slot);
  begin_call();
  void *block = tslab_calloc(1, bytes);
  if (block != NULL) CHECK(pattern_is_zero(block, bytes));
  slot_fill(slot, block, bytes);
}

static void slot_aligned(struct slot *slot, size_t alignment, size_t bytes) {
  slot_free(slot);
  begin_call();
  void *block = tslab_aligned_alloc(alignment, bytes);
  CHECK_EQ((uintptr_t)block & (alignment - 1), 0);
  slot_fill(slot, block, bytes);
}

static void slot_realloc(struct slot *slot, size_t bytes) {
  slot_check(slot);
  struct slot old = *slot;
  begin_call();
  void *block = tslab_realloc(old.address, bytes);
  if (block != NULL) {
    size_t kept = bytes < old.bytes ? bytes : old.bytes;
    CHECK(pattern_is(block, old.bytes, old.seed, kept));
    slot->address = NULL;
  }
  slot_fill(slot, block, bytes);
  if (block == NULL) slot_check(slot);
}

static struct slot *slot_at(unsigned i) { return &slots[i % SLOTS]; }

static void small_and_medium(void) {
  for (unsigned i = 0; i < 60; i++) slot_malloc(slot_at(i), 16 * i);
  for (unsigned i = 60; i < 90; i++) slot_malloc(slot_at(i), 32 * KIB - i);
  for (unsigned i = 0; i < 60; i += 2) slot_free(slot_at(i));
  for (unsigned i = 0; i < 60; i += 2) slot_calloc(slot_at(i), 40 * i);
}

static void large_and_huge(void) {
  slot_malloc(slot_at(90), 100 * KIB);
  slot_malloc(slot_at(91), 5 * MIB);
  slot_calloc(slot_at(92), 4 * MIB);
  slot_malloc(slot_at(93), 150 * MIB);
  slot_free(slot_at(92));
  slot_calloc(slot_at(92), 3 * MIB);
  slot_free(slot_at(93));
}

static void aligned(void) {
  unsigned i = 94;
  for (size_t alignment = 64; alignment <= 16 * MIB; alignment *= 16) {
    slot_aligned(slot_at(i++), alignment, 1000);
    slot_aligned(slot_at(i++), alignment, 100 * KIB);
  }
  slot_free(slot_at(i - 1));
}

static void growing(void) {
  for (size_t bytes = 16; bytes < MIB; bytes = bytes * 5 / 2) {
    slot_realloc(slot_at(110), bytes);
    slot_malloc(slot_at(111), 70 * KIB);
  }
  slot_realloc(slot_at(110), 100);
}

// The second block lies behind the first, or in the only place where the first could grow.
static void moving(void) {
  slot_malloc(slot_at(110), 3 * MIB);
  slot_malloc(slot_at(111), 3 * MIB);
  slot_realloc(slot_at(110), 60 * MIB);
  slot_free(slot_at(110));
}

static void *in_a_thread(void *unused) {
  for (unsigned i = 0; i < THREAD_BLOCKS; i++) slot_malloc(slot_at(112 + i % 40), 100 + i * 50);
  for (unsigned i = 0; i < 20; i++) slot_free(slot_at(112 + i));
  return unused;
}

static void other_threads(void) {
  threads_run_one(in_a_thread, NULL);
  for (unsigned i = 0; i < 40; i++) slot_free(slot_at(112 + i));
  threads_run_one(in_a_thread, NULL);
}

static void random_step(uint64_t *seed) {
  struct slot *slot = slot_at(test_random_below(seed, SLOTS));
  size_t bytes = (size_t)(test_random(seed) % ((uint64_t)1 << test_random_below(seed, 21)));
  switch (test_random_below(seed, 6)) {
    case 0: slot_free(slot); break;
    case 1: slot_calloc(slot, bytes); break;
    case 2: slot_aligned(slot, (size_t)1 << test_random_below(seed, 18), bytes); break;
    case 3: slot_malloc(slot, bytes); break;
    default: slot_realloc(slot, bytes + 1); break;
  }
}

static void random_steps(void) {
  uint64_t seed = 77;
  for (unsigned i = 0; i < RANDOM_STEPS; i++) {
    random_step(&seed);
    os_fake.now_ms += i % 3;
  }
}

static void add_length(const char *text, size_t length, void *context) {
  *(size_t *)context += text == NULL ? 0 : length;
}

// Once there was an epoch, which is told, there is a slot to look at.
static void telling(void) {
  size_t with = 0, without = 0;
  tslab_epoch epoch = tslab_epoch_open("told", NULL);
  CHECK(epoch != TSLAB_NO_EPOCH || !refusals_end);
  begin_call();
  tslab_stats_json(add_length, &with);
  CHECK_EQ(errno, EDOM);
  if (epoch != TSLAB_NO_EPOCH) CHECK_EQ(tslab_epoch_close(epoch).error, 0);
  tslab_stats_json(add_length, &without);
  CHECK_EQ(with > without + 100, epoch != TSLAB_NO_EPOCH);
}

static void trim(void) {
  begin_call();
  tslab_trim(MIB);
  CHECK_EQ(errno, EDOM);
  for (unsigned i = 0; i < SLOTS; i++) slot_check(slot_at(i));
}

static void scenario(void) {
  void (*const parts[])(void) = {
      small_and_medium, large_and_huge, aligned,      growing,     moving,
      telling,          other_threads,  random_steps, state_check, trim};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    parts[i]();
    os_fake.now_ms += 10;
  }
}

// Everything is as if nothing had ever failed.
static void recover(void) {
  os_fake_recover();
  refusals_end = true;
  state_check();
  small_and_medium();
  large_and_huge();
  moving();
  telling();
  for (unsigned i = 0; i < SLOTS; i++) slot_free(slot_at(i));
  tslab_trim(0);
  state_check();
  CHECK_EQ(state_owned_units(), 0);
  CHECK_EQ(tsl_units_dirty(), 0);
}

static struct os_fake_failure failure;

static void scenario_with_failure(void) {
  tsl_options.helper = TSL_HELPER_NEVER;  // the calls are counted
  tsl_options.purge_delay_ms = 1;
  os_fake.has_no_places = is_reserved;
  os_fake.failures[OS_FAKE_FALLIBLE] = failure;
  scenario();
  if (failure.at != 0) CHECK_EQ(refusals(), 1);
  if (failure.from != 0) CHECK(refusals() != 0);
  recover();
}

static uint64_t *call_count;  // shared with the child that counts
static uint64_t *kind_count;

static void count_calls(void) {
  tsl_options.helper = TSL_HELPER_NEVER;  // the calls are counted
  tsl_options.purge_delay_ms = 1;
  refusals_end = true;
  scenario();
  *call_count = os_fake.calls[OS_FAKE_FALLIBLE];
  memcpy(kind_count, os_fake.calls, OS_FAKE_FALLIBLE * sizeof *kind_count);
  recover();
}

static void run_with(uint64_t at, uint64_t from) {
  char name[80];
  failure = (struct os_fake_failure){at, from};
  snprintf(name, sizeof name, "refusal of call %d%s%s", (int)(at + from), at ? "" : " and later",
           is_reserved ? ", reserved" : "");
  test_run(name, scenario_with_failure);
}

// The scenario is worth something only when it meets every call of the system that may fail. What
// comes after a reservation's first calls is the same as in a plan.
static void every_kind_is_met(void) {
  for (int kind = 0; kind < OS_FAKE_FALLIBLE; kind++) {
    check_context_set("kind %d", kind);
    if (kind == OS_FAKE_RESERVE || (kind == OS_FAKE_GUARD && !TSL_SECURE)) continue;
    CHECK(kind_count[kind] != 0);
  }
}

int main(void) {
  call_count = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  kind_count = call_count + 1;
  RUN(count_calls);
  RUN(every_kind_is_met);
  // The secure build makes many more calls, of guards: one of four is refused.
  for (uint64_t call = 1; call <= *call_count; call += TSL_SECURE ? 4 : 1) {
    run_with(call, 0);
    run_with(0, call);
  }
  is_reserved = true;
  for (uint64_t call = 1; call <= FIRST_CALLS; call++) {
    run_with(call, 0);
    run_with(0, call);
  }
  return test_status();
}
