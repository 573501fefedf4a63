#include "slab/slab.h"

#include "base/options.h"
#include "capture.h"
#include "memory/segment.h"
#include "os_fake.h"
#include "threads.h"

enum { MOST_BLOCKS = TSL_SLAB_WORDS * 64, STEPS = 3000 };

enum place { FREE, OUT, REMOTE };

static struct tsl_slab *slab;
static unsigned capacity;
static uint8_t shadow[MOST_BLOCKS];  // enum place, each
static unsigned counts[3];           // blocks in each place
static bool pushed;                  // whether the slab would be on a ready stack

static void open_region(void) {
  os_fake.limit_bytes = (size_t)1 << 26;
  CHECK(tsl_region_init());
}

static void open_slab(unsigned class) {
  bool clean;
  unsigned units = tsl_sizeclasses[class].units;
  tsl_unit unit = tsl_units_take(units, units, &clean);
  CHECK(unit != 0);
  slab = tsl_slab_open(unit, class, 0);
  capacity = tsl_sizeclasses[class].capacity;
  memset(shadow, FREE, sizeof shadow);
  memcpy(counts, (unsigned[]){capacity, 0, 0}, sizeof counts);
  pushed = false;
}

static void close_slab(void) {
  tsl_units_give((tsl_unit)tsl_slab_unit(slab), tsl_sizeclasses[slab->class].units);
}

static void shadow_move(unsigned index, enum place from, enum place to) {
  CHECK(index < capacity);
  CHECK_EQ(shadow[index], from);
  shadow[index] = (uint8_t)to;
  counts[from]--;
  counts[to]++;
}

// S1, S3, and every bit.
static void check_slab(void) {
  CHECK(tsl_slab_valid(slab));
  CHECK_EQ(slab->out, counts[OUT] + counts[REMOTE]);
  for (unsigned i = 0; i < capacity; i++) {
    CHECK_EQ(slab->free[i / 64] >> (i % 64) & 1, shadow[i] == FREE);
    CHECK_EQ(slab->remote[i / 64] >> (i % 64) & 1, shadow[i] == REMOTE);
  }
}

static unsigned index_of(uintptr_t address) {
  struct tsl_place place = tsl_slab_place(slab->class, (void *)address);
  CHECK(place.slab == slab);
  CHECK(place.index >= 0);
  return (unsigned)place.index;
}

static unsigned take(void) {
  unsigned taken = 0;
  struct tsl_handful handful = tsl_slab_take(slab);
  for (uint64_t rest = handful.blocks; rest != 0; rest &= rest - 1, taken++) {
    size_t offset = (size_t)tsl_lowest_bit(rest) * tsl_sizeclasses[slab->class].bytes;
    shadow_move(index_of(handful.base + offset), FREE, OUT);
  }
  CHECK(taken != 0);
  return taken;
}

static void take_all(void) {
  while (slab->summary != 0) take();
  CHECK_EQ(counts[OUT] + counts[REMOTE], capacity);
}

static void put(unsigned index) {
  CHECK(tsl_slab_put(slab, index));
  shadow_move(index, OUT, FREE);
}

static void put_remote(unsigned index) {
  enum tsl_remote result = tsl_slab_put_remote(slab, index);
  CHECK_EQ(result, pushed ? TSL_REMOTE_DONE : TSL_REMOTE_PUSH);
  pushed = true;
  shadow_move(index, OUT, REMOTE);
}

static void collect(void) {
  tsl_slab_collect(slab);
  pushed = false;
  for (unsigned i = 0; i < capacity; i++) {
    if (shadow[i] == REMOTE) shadow_move(i, REMOTE, FREE);
  }
}

// All classes one after the other in the same units: nothing of the one before must be left.
static void classes_in_turn(void) {
  open_region();
  for (unsigned class = 0; class < TSL_CLASSES; class ++) {
    check_context_set("class %u", class);
    open_slab(class);
    check_slab();
    take_all();
    check_slab();
    for (unsigned i = 0; i < capacity; i += 2) put(i);
    for (unsigned i = 1; i < capacity; i += 2) put_remote(i);
    check_slab();
    if (pushed) collect();
    check_slab();
    CHECK_EQ(slab->out, 0);
    close_slab();
  }
}

static void handfuls_rise(void) {
  open_region();
  open_slab(tsl_sizeclass_of(48));
  uintptr_t last = 0;
  while (slab->summary != 0) {
    struct tsl_handful handful = tsl_slab_take(slab);
    CHECK(handful.base > last);
    last = handful.base;
  }
  CHECK_EQ(slab->out, capacity);
}

static void places(void) {
  open_region();
  for (unsigned class = 0; class < TSL_CLASSES; class ++) {
    open_slab(class);
    uintptr_t start = tsl_unit_address(tsl_slab_unit(slab));
    size_t bytes = tsl_sizeclasses[class].bytes;
    for (uintptr_t offset = 0; offset < tsl_sizeclasses[class].slab_bytes; offset += 8) {
      struct tsl_place place = tsl_slab_place(class, (void *)(start + offset));
      bool exact = offset % bytes == 0 && offset / bytes < capacity;
      CHECK(place.slab == slab);
      CHECK_EQ(place.index, exact ? (int)(offset / bytes) : -1);
    }
    close_slab();
  }
}

static void double_put_has_no_effect(void) {
  open_region();
  open_slab(tsl_sizeclass_of(100));
  CHECK(!tsl_slab_put(slab, 5));
  check_slab();
  take();
  put(5);
  CHECK(!tsl_slab_put(slab, 5));
  check_slab();
}

static void double_remote_put_is_told(void) {
  open_region();
  open_slab(tsl_sizeclass_of(100));
  take();
  put_remote(5);
  CHECK_EQ(tsl_slab_put_remote(slab, 5), TSL_REMOTE_TWICE);
  check_slab();
  collect();
  check_slab();
}

// Freed by its owner and by another thread: found when the slab is collected, and counted once.
static void put_by_two_is_told_later(void) {
  tsl_options.on_error = TSL_ON_ERROR_REPORT;
  open_region();
  open_slab(tsl_sizeclass_of(100));
  take();
  put(7);
  CHECK_EQ(tsl_slab_put_remote(slab, 7), TSL_REMOTE_PUSH);
  pushed = true;
  put_remote(8);
  capture_start();
  collect();
  const char *said = capture_end();
  CHECK(strstr(said, "freed by two threads\n") != NULL);
  CHECK_EQ(capture_lines(said), 1);
  check_slab();
}

// S4: one push for all that comes before the owner looks, and one more afterwards.
static void one_push_a_round(void) {
  open_region();
  open_slab(tsl_sizeclass_of(16));
  take_all();
  for (int round = 0; round < 3; round++) {
    for (unsigned i = 0; i < capacity / 4; i++) put_remote(i * 4 + (unsigned)round);
    collect();
    check_slab();
  }
}

static void random_operation(uint64_t *seed) {
  unsigned index = test_random_below(seed, capacity), what = test_random_below(seed, 64);
  if (what == 0 && slab->summary != 0) {
    take();
  } else if (what <= 2 && pushed) {
    collect();
  } else if (shadow[index] == FREE) {
    CHECK(!tsl_slab_put(slab, index));
  } else if (shadow[index] == REMOTE) {
    CHECK_EQ(tsl_slab_put_remote(slab, index), TSL_REMOTE_TWICE);
  } else if (what % 2 == 0) {
    put(index);
  } else {
    put_remote(index);
  }
}

static void random_operations(void) {
  static const unsigned sizes[] = {16, 48, 64, 512, 1024, 1280, 8192, 10240, 32768};
  uint64_t seed = 3;
  open_region();
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    open_slab(tsl_sizeclass_of(sizes[i]));
    for (int step = 0; step < STEPS; step++) {
      check_context_set("%u bytes, step %d", sizes[i], step);
      random_operation(&seed);
      if (step % 64 == 0) check_slab();
    }
  }
}

// Threads free the blocks that were taken, each its share, while the owner looks whenever it was
// told to.
static uint32_t pushes, joined;

static void *put_share(void *unused) {
  unsigned share = tsl_add_relaxed(&joined, 1);
  for (unsigned i = share; i < capacity; i += THREADS) {
    enum tsl_remote result = tsl_slab_put_remote(slab, i);
    CHECK(result != TSL_REMOTE_TWICE);
    if (result == TSL_REMOTE_PUSH) __atomic_fetch_add(&pushes, 1, __ATOMIC_RELEASE);
  }
  return unused;
}

static void collect_until_all_is_back(void) {
  uint32_t seen = 0;
  while (slab->out != 0) {
    if (tsl_load_acquire(&pushes) == seen) continue;
    seen++;
    tsl_slab_collect(slab);
  }
  CHECK_EQ(seen, tsl_load_acquire(&pushes));
}

static void every_remote_put_arrives_once(void) {
  pthread_t threads[THREADS];
  open_region();
  open_slab(tsl_sizeclass_of(16));
  for (int round = 0; round < 5; round++) {
    while (slab->summary != 0) tsl_slab_take(slab);
    pushes = joined = 0;
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, put_share, NULL);
    collect_until_all_is_back();
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    check_slab();
  }
}

static void broken_slabs_are_found(void) {
  open_region();
  open_slab(tsl_sizeclass_of(1000));
  take();
  put(1);
  put(3);
  CHECK(tsl_slab_valid(slab));
  slab->out++;
  CHECK(!tsl_slab_valid(slab));
  slab->out--;
  slab->summary = 0;
  CHECK(!tsl_slab_valid(slab));
  slab->summary = 1;
  slab->free[0] ^= 1;
  CHECK(!tsl_slab_valid(slab));
}

int main(void) {
  RUN(classes_in_turn);
  RUN_UNLESS_SECURE(handfuls_rise);
  RUN(places);
  RUN_UNLESS_SECURE(double_put_has_no_effect);
  RUN_UNLESS_SECURE(double_remote_put_is_told);
  RUN_UNLESS_SECURE(put_by_two_is_told_later);
  RUN(one_push_a_round);
  RUN(random_operations);
  RUN(every_remote_put_arrives_once);
  RUN_UNLESS_SECURE(broken_slabs_are_found);
  return test_status();
}
