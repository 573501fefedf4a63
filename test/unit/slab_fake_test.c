#include "slab/slab.h"

#include "memory/growth.h"
#include "memory/units.h"
#include "os_fake.h"
#include "threads.h"

enum { MOST_BLOCKS = TSL_SLAB_WORDS * 64, STEPS = 3000 };

enum place { FREE, OUT, REMOTE };

static struct tsl_slab *slab;
static unsigned capacity;
static uint8_t shadow[MOST_BLOCKS];  // enum position, each
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
  struct tsl_position position = tsl_slab_position(slab->class, (void *)address);
  CHECK(position.slab == slab);
  CHECK(position.index >= 0);
  return (unsigned)position.index;
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
  CHECK(index < TSL_SLAB_WORDS * 64);
  CHECK(tsl_slab_put(slab, index));
  shadow_move(index, OUT, FREE);
}

static enum tsl_remote put_remote_block(struct tsl_slab *of, unsigned index) {
  uint64_t block = UINT64_C(1) << index % 64;
  enum tsl_remote result = tsl_slab_put_remote(of, index / 64, &block);
  return result == TSL_REMOTE_LATE ? tsl_slab_count_down(of) : result;
}

static void put_remote(unsigned index) {
  enum tsl_remote result = put_remote_block(slab, index);
  CHECK_EQ(result, pushed ? TSL_REMOTE_DONE : TSL_REMOTE_PUSH);
  pushed = true;
  shadow_move(index, OUT, REMOTE);
}

// Returns a block that was freed by two threads.
static const void *collect(void) {
  const void *twice = tsl_slab_collect(slab);
  pushed = false;
  for (unsigned i = 0; i < capacity; i++) {
    if (shadow[i] == REMOTE) shadow_move(i, REMOTE, FREE);
  }
  return twice;
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
      struct tsl_position position = tsl_slab_position(class, (void *)(start + offset));
      bool exact = offset % bytes == 0 && offset / bytes < capacity;
      CHECK(position.slab == slab);
      CHECK_EQ(position.index, exact ? (int)(offset / bytes) : -1);
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
  CHECK_EQ(put_remote_block(slab, 5), TSL_REMOTE_TWICE);
  check_slab();
  collect();
  check_slab();
}

// Freed by its owner and by another thread: found when the slab is collected, and counted once.
static void put_by_two_is_told_later(void) {
  open_region();
  open_slab(tsl_sizeclass_of(100));
  take();
  put(7);
  CHECK_EQ(put_remote_block(slab, 7), TSL_REMOTE_PUSH);
  pushed = true;
  put_remote(8);
  CHECK(collect() == tsl_slab_first(slab, 0, 1 << 7));
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
    CHECK_EQ(put_remote_block(slab, index), TSL_REMOTE_TWICE);
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
    enum tsl_remote result = put_remote_block(slab, i);
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

// S5: sealing. What frees answer is counted: exactly one of them and the seal is the last.
static unsigned empties;

static void count_answer(enum tsl_remote answer) {
  CHECK(answer == TSL_REMOTE_DONE || answer == TSL_REMOTE_EMPTY);
  CHECK_EQ(empties, 0);
  empties += answer == TSL_REMOTE_EMPTY;
}

static uint32_t seal(void) {
  CHECK_EQ(empties, 0);
  struct tsl_sealed sealed = tsl_slab_seal(slab, 0);
  empties += sealed.empty;
  return sealed.out;
}

static void put_sealed(unsigned index) {
  count_answer(put_remote_block(slab, index));
  CHECK_EQ(slab->free[index / 64] >> (index % 64) & 1, 1);
}

// Opens a slab whose first `count` blocks are out.
static void open_slab_with(unsigned bytes, unsigned count) {
  open_slab(tsl_sizeclass_of(bytes));
  take_all();
  for (unsigned i = count; i < capacity; i++) put(i);
  empties = 0;
}

// Its record is as good as new: the next slab there collects nothing that is not its own.
static void close_sealed_slab(void) {
  CHECK_EQ(empties, 1);
  CHECK_EQ(slab->left, 0);
  CHECK(tsl_slab_close(slab));
  CHECK_EQ(slab->remote_summary, 0);
  CHECK_EQ(slab->sealed, 0);
  for (unsigned w = 0; w < TSL_SLAB_WORDS; w++) CHECK_EQ(slab->remote[w], 0);
  close_slab();
}

static void sealed_slab_counts_down(void) {
  static const unsigned sizes[] = {16, 48, 1024, 1280, 32768};
  open_region();
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    for (unsigned count = 0; count <= 7; count++) {
      check_context_set("%u bytes, %u blocks", sizes[i], count);
      open_slab_with(sizes[i], count);
      CHECK_EQ(seal(), count);
      CHECK_EQ(slab->sealed, 1);
      CHECK_EQ(empties, count == 0);
      for (unsigned index = count; index-- != 0;) {
        put_sealed(index);
        CHECK_EQ(empties, index == 0);
      }
      close_sealed_slab();
    }
  }
}

// All words of a slab of 4,096 blocks.
static void whole_slab_is_sealed(void) {
  open_region();
  open_slab_with(16, MOST_BLOCKS);
  CHECK_EQ(seal(), capacity);
  for (unsigned i = 0; i < capacity; i++) {
    CHECK_EQ(empties, 0);
    put_sealed(i);
  }
  close_sealed_slab();
  open_slab_with(16, 9);
  CHECK_EQ(put_remote_block(slab, 3), TSL_REMOTE_PUSH);
  pushed = true;
  shadow_move(3, OUT, REMOTE);
  collect();
  check_slab();
}

// Blocks that others freed before, in words that the owner did not look at: the one who pushes
// finds the ready stack closed, and counts down.
static void frees_before_the_seal(void) {
  open_region();
  for (unsigned early = 1; early <= 5; early++) {
    open_slab_with(16, 5);
    for (unsigned i = 0; i < early; i++) put_remote(i);
    CHECK_EQ(seal(), 5 - early);
    CHECK_EQ(empties, 0);
    count_answer(tsl_slab_count_down(slab));
    CHECK_EQ(empties, early == 5);
    for (unsigned i = early; i < 5; i++) put_sealed(i);
    close_sealed_slab();
  }
}

// A freer has done the first steps of S4 when the slab is sealed; it goes on at one of three points
// among the frees that come later.
enum step { BIT_SET, SUMMARY_SET };

static void stop_freer_at(enum step step, unsigned index) {
  unsigned word = index / 64;
  CHECK(slab->remote[word] == 0);
  slab->remote[word] |= UINT64_C(1) << (index % 64);
  if (step == SUMMARY_SET) slab->remote_summary |= UINT64_C(1) << word;
}

// What tsl_slab_put_remote and who called it do behind that step.
static void resume_freer(enum step step, unsigned index) {
  uint64_t bit = UINT64_C(1) << (index / 64);
  if (step == BIT_SET) CHECK((tsl_or_acq_rel(&slab->remote_summary, bit) & bit) != 0);
  count_answer(tsl_slab_count_down(slab));
}

static void freers_in_the_middle(void) {
  open_region();
  for (int step = BIT_SET; step <= SUMMARY_SET; step++) {
    for (unsigned later = 0; later <= 3; later++) {
      for (unsigned resumed = 0; resumed <= later; resumed++) {
        check_context_set("step %d, resumed after %u of %u", step, resumed, later);
        open_slab_with(16, later + 1);
        stop_freer_at((enum step)step, later);
        CHECK_EQ(seal(), later);
        for (unsigned i = 0; i <= later; i++) {
          if (i == resumed) resume_freer((enum step)step, later);
          if (i < later) put_sealed(i);
        }
        close_sealed_slab();
      }
    }
  }
}

// The same before the seal adds what is out: counts go below zero for a while.
static void frees_during_the_seal(void) {
  open_region();
  for (unsigned early = 0; early <= 4; early++) {
    open_slab_with(16, 4);
    slab->sealed = 1;
    slab->remote_summary = ~UINT64_C(0);
    slab->remote[0] = ~UINT64_C(0);
    for (unsigned i = 0; i < early; i++) put_sealed(i);
    CHECK_EQ(empties, 0);
    CHECK_EQ(slab->left, -(int)early);
    slab->left += 4;  // the last step, when the sealer found four out
    empties += slab->left == 0;
    for (unsigned i = early; i < 4; i++) put_sealed(i);
    close_sealed_slab();
  }
}

// Freers stopped in three words, one of which would push.
static void several_freers_in_the_middle(void) {
  open_region();
  open_slab_with(16, 300);
  stop_freer_at(BIT_SET, 5);
  stop_freer_at(SUMMARY_SET, 70);
  stop_freer_at(BIT_SET, 130);
  CHECK_EQ(put_remote_block(slab, 71), TSL_REMOTE_DONE);
  CHECK_EQ(put_remote_block(slab, 200), TSL_REMOTE_DONE);
  CHECK_EQ(seal(), 300 - 5);
  resume_freer(BIT_SET, 130);
  for (unsigned i = 0; i < 300; i++) {
    if (i != 5 && i != 70 && i != 130 && i != 71 && i != 200) put_sealed(i);
  }
  resume_freer(SUMMARY_SET, 70);
  CHECK_EQ(empties, 0);
  resume_freer(BIT_SET, 5);
  close_sealed_slab();
}

static void double_frees_in_a_sealed_slab(void) {
  open_region();
  open_slab_with(48, 6);
  put_remote(0);
  collect();
  put_remote(1);
  CHECK_EQ(seal(), 4);
  CHECK_EQ(put_remote_block(slab, 0), TSL_REMOTE_TWICE);
  CHECK_EQ(put_remote_block(slab, 1), TSL_REMOTE_TWICE);
  CHECK_EQ(put_remote_block(slab, capacity - 1), TSL_REMOTE_TWICE);
  count_answer(tsl_slab_count_down(slab));
  for (unsigned i = 2; i < 5; i++) {
    put_sealed(i);
    int32_t left = slab->left;
    CHECK_EQ(put_remote_block(slab, i), TSL_REMOTE_TWICE);
    CHECK_EQ(slab->left, left);
  }
  put_sealed(5);
  close_sealed_slab();
}

// Freed by its owner and by another thread, and sealed before it was found.
static void put_by_two_is_told_by_the_seal(void) {
  open_region();
  open_slab_with(100, 3);
  put(1);
  CHECK_EQ(put_remote_block(slab, 1), TSL_REMOTE_PUSH);
  struct tsl_sealed sealed = tsl_slab_seal(slab, 0);
  CHECK(sealed.twice == tsl_slab_first(slab, 0, 1 << 1));
  CHECK_EQ(sealed.out, 2);
  CHECK(!sealed.empty);
  count_answer(tsl_slab_count_down(slab));
  put_sealed(0);
  put_sealed(2);
  close_sealed_slab();
}

static void *put_share_and_count(void *unused) {
  unsigned share = tsl_add_relaxed(&joined, 1);
  for (unsigned i = share; i < capacity; i += THREADS) {
    enum tsl_remote result = put_remote_block(slab, i);
    CHECK(result != TSL_REMOTE_TWICE);
    if (result == TSL_REMOTE_PUSH) result = tsl_slab_count_down(slab);  // the stack is closed
    if (result == TSL_REMOTE_EMPTY) __atomic_fetch_add(&pushes, 1, __ATOMIC_RELAXED);
  }
  return unused;
}

// Threads free all blocks while the owner seals, at some moment.
static void empty_once_among_threads(void) {
  pthread_t threads[THREADS];
  uint64_t seed = 5;
  open_region();
  for (int round = 0; round < 200; round++) {
    open_slab_with(round % 2 == 0 ? 16 : 512, MOST_BLOCKS);
    pushes = joined = 0;
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, put_share_and_count, NULL);
    while (tsl_load_relaxed(&joined) == 0) continue;
    for (unsigned wait = test_random_below(&seed, 20000); wait != 0; wait--) tsl_cpu_relax();
    empties += tsl_slab_seal(slab, 0).empty;
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    empties += pushes;
    close_sealed_slab();
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
  RUN(sealed_slab_counts_down);
  RUN(whole_slab_is_sealed);
  RUN(frees_before_the_seal);
  RUN(freers_in_the_middle);
  RUN(frees_during_the_seal);
  RUN(several_freers_in_the_middle);
  RUN(double_frees_in_a_sealed_slab);
  RUN(put_by_two_is_told_by_the_seal);
  RUN(empty_once_among_threads);
  RUN_UNLESS_SECURE(broken_slabs_are_found);
  return test_status();
}
