#include "state/bin.h"

#include "base/random.h"
#include "blocks.h"
#include "heap/rest.h"
#include "state.h"

enum { FEW = 40 };

static struct tsl_heap *heap, *other;

static void open_heaps(void) { blocks_open((size_t)1 << 27, &heap, &other); }

static void leave_few(size_t bytes) {
  if (heap == NULL) open_heaps();
  tsl_heap_current = heap;
  block_count = 0;
  alloc_many(bytes, FEW);
}

// That many allocations of a size, none of them of a block that was handed out already.
static void check_distinct(size_t bytes, unsigned count) {
  static void *got[1000];
  CHECK_LE(count, 1000);
  for (unsigned i = 0; i < count; i++) {
    got[i] = tsl_fast_malloc(bytes);
    CHECK(got[i] != NULL);
    for (unsigned j = 0; j < i; j++) CHECK_THAT(got[i] != got[j], "%p twice", got[i]);
  }
}

static const size_t sizes[] = {16, 64, 1024, 3000, 32000};
enum { SIZES = sizeof sizes / sizeof *sizes };

// The head of a bin is known at once, with room in the bin and without.
static void freed_twice_in_a_row(void) {
  for (int s = 0; s < SIZES; s++) {
    leave_few(sizes[s]);
    tsl_fast_free(blocks[0]);
    CHECK(blocks_is_reported(blocks[0], "is free already"));
    unsigned limit = tsl_bin_limit(heap, tsl_sizeclass_of(sizes[s]));
    alloc_many(sizes[s], limit + 1);
    for (unsigned i = 1; i <= limit; i++) tsl_fast_free(blocks[block_count - i]);
    CHECK(blocks_is_reported(blocks[block_count - limit], "is free already"));
    check_distinct(sizes[s], 300);
    state_check();
  }
}

// A full bin takes nothing: the slab's bit tells.
static void in_the_slab_of_a_full_bin(void) {
  for (int s = 0; s < SIZES; s++) {
    leave_few(sizes[s]);
    unsigned limit = tsl_bin_limit(heap, tsl_sizeclass_of(sizes[s]));
    alloc_many(sizes[s], limit + 1);
    for (unsigned i = 1; i <= limit + 1; i++) tsl_fast_free(blocks[block_count - i]);
    for (int i = 0; i < 5; i++) tsl_fast_free(blocks[i]);
    for (int i = 0; i < 5; i++) CHECK(blocks_is_reported(blocks[i], "is free already"));
    check_distinct(sizes[s], 300);
  }
}

// B2: found when the block would be handed out the second time; the rest of the bin is lost.
static void deeper_on_a_bin(void) {
  for (int s = 0; s < SIZES; s++) {
    leave_few(sizes[s]);
    tsl_options.on_error = TSL_ON_ERROR_REPORT;
    for (int i = 0; i < 5; i++) tsl_fast_free(blocks[i]);
    tsl_fast_free(blocks[1]);
    capture_start();
    check_distinct(sizes[s], 300);
    const char *said = capture_end();
    CHECK_EQ(capture_lines(said), 1);
    CHECK(strstr(said, "was written to, or freed twice") != NULL);
  }
}

// B2: a block that was freed, written to and freed again comes off its bin once.
static void written_and_freed_again(void) {
  for (int s = 0; s < SIZES; s++) {
    leave_few(sizes[s]);
    tsl_options.on_error = TSL_ON_ERROR_IGNORE;
    for (int i = 0; i < 5; i++) tsl_fast_free(blocks[i]);
    memset(blocks[2], 0, 8);
    tsl_fast_free(blocks[2]);
    check_distinct(sizes[s], 300);
  }
}

// What lies in the first word of a live block is the program's: each word that a free block may
// have, those of the block itself and of others, is accused of nothing.
static void no_word_accuses(void) {
  leave_few(64);
  tsl_options.on_error = TSL_ON_ERROR_ABORT;
  struct tsl_free_block seen[3];
  tsl_fast_free(blocks[0]);
  seen[0] = *(struct tsl_free_block *)blocks[0];
  free_as(other, blocks[1]);
  seen[1] = *(struct tsl_free_block *)blocks[1];
  tsl_fast_free(blocks[2]);
  tsl_home_rest_all(heap->home);
  seen[2] = *(struct tsl_free_block *)blocks[2];
  for (int i = 3; i < 39; i++) *(struct tsl_free_block *)blocks[i] = seen[i % 3];
  for (int i = 3; i < 39; i += 2) tsl_fast_free(blocks[i]);
  for (int i = 4; i < 39; i += 2) free_as(other, blocks[i]);
  state_check();
  check_distinct(64, 300);
}

// Random words, marks and links in live blocks, random frees by two threads: no report.
static void random_contents_accuse_nobody(void) {
  enum { SLOTS = 400, STEPS = 400000 };
  static struct tsl_free_block *slots[SLOTS];
  static struct tsl_free_block words[16];
  uint64_t seed = 1;
  open_heaps();
  tsl_options.on_error = TSL_ON_ERROR_ABORT;
  memset(slots, 0, sizeof slots);
  for (int step = 0; step < STEPS; step++) {
    uint64_t chance = tsl_random_next(&seed);
    struct tsl_free_block **slot = &slots[chance % SLOTS];
    tsl_heap_current = chance >> 20 & 1 ? heap : other;
    if (*slot == NULL) {
      *slot = tsl_fast_malloc(sizes[(chance >> 24) % SIZES]);
      words[chance >> 32 & 15] = **slot;  // what the last free left there
      if (chance >> 40 & 1) **slot = words[chance >> 36 & 15];
      continue;
    }
    tsl_fast_free(*slot);
    words[chance >> 32 & 15] = **slot;
    *slot = NULL;
  }
  tsl_heap_current = heap;
  state_check();
}

static void damage_costs_one_block(void) {
  leave_few(64);
  tsl_options.on_error = TSL_ON_ERROR_REPORT;
  for (int i = 0; i < 5; i++) tsl_fast_free(blocks[i]);
  ((struct tsl_free_block *)blocks[4])->mark++;
  capture_start();
  void *next = tsl_fast_malloc(64);
  CHECK_EQ(capture_lines(capture_end()), 1);
  CHECK(next == blocks[3]);
}

// Whatever the words of the head are, the next allocation finds it.
static void damaged_heads_are_found(void) {
  static const uintptr_t damages[][2] = {
      {0, 0}, {UINTPTR_MAX, UINTPTR_MAX}, {UINT64_C(0x4141414141414141), 1}, {1, 0}};
  for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
    leave_few(64);
    tsl_options.on_error = TSL_ON_ERROR_REPORT;
    for (int b = 0; b < 5; b++) tsl_fast_free(blocks[b]);
    memcpy(blocks[4], damages[i], sizeof damages[i]);
    capture_start();
    check_distinct(64, 300);
    CHECK_EQ(capture_lines(capture_end()), 1);
    state_check();
  }
}

// A heap that opens a slab for one size looks at the last block that was freed of each other one.
static void growth_looks_at_all_bins(void) {
  leave_few(64);
  tsl_fast_free(blocks[0]);
  memset(blocks[0], 0x41, 8);
  tsl_options.on_error = TSL_ON_ERROR_REPORT;
  capture_start();
  (void)tsl_fast_malloc(500);
  CHECK(strstr(capture_end(), "was written to, or freed twice; 64 bytes") != NULL);
}

// Later it does so at one opening in sixteen.
static void later_growth_looks_seldom(void) {
  leave_few(64);
  heap->home->opened = TSL_FIRST_OPENINGS + 1;
  tsl_fast_free(blocks[0]);
  memset(blocks[0], 0x41, 8);
  tsl_options.on_error = TSL_ON_ERROR_REPORT;
  for (unsigned class = 20; heap->home->opened % TSL_OPENINGS_A_CHECK != 0; class ++) {
    capture_start();
    (void)tsl_fast_malloc(tsl_sizeclasses[class].bytes);
    CHECK_EQ(capture_lines(capture_end()), 0);
  }
  capture_start();
  (void)tsl_fast_malloc(tsl_sizeclasses[19].bytes);
  CHECK(strstr(capture_end(), "was written to, or freed twice; 64 bytes") != NULL);
}

static void growth_finds_what_was_never_handed_out(void) {
  leave_few(16);
  tsl_fast_free((char *)blocks[0] + 4096);
  tsl_options.on_error = TSL_ON_ERROR_REPORT;
  capture_start();
  (void)tsl_fast_malloc(500);
  CHECK(strstr(capture_end(), "not the beginning of a block; 16 bytes") != NULL);
  state_check();
}

static void misaligned_addresses_are_reported(void) {
  leave_few(64);
  for (int offset = 1; offset < 16; offset++)
    CHECK(blocks_is_reported((char *)blocks[0] + offset, "not the beginning of a block"));
  CHECK(blocks_is_reported((char *)heap + 1, "not a block of this allocator"));
  tsl_fast_free(blocks[0]);
  state_check();
}

// B5: a bin's length is known at each moment, whatever was allocated since it was counted.
static void lengths_are_true(void) {
  leave_few(64);
  unsigned class = tsl_sizeclass_of(64), length = 0;
  uint64_t seed = 7;
  for (int step = 0; step < 100000; step++) {
    bool frees = block_count != 0 && tsl_random_next(&seed) % 3 != 0;
    length = tsl_bin_length(heap, class);
    if (frees) {
      tsl_fast_free(blocks[--block_count]);
      if (length < tsl_bin_limit(heap, class)) CHECK_EQ(tsl_bin_length(heap, class), length + 1);
    } else if (block_count < 3000) {
      alloc_many(64, 1);
      CHECK_EQ(tsl_bin_length(heap, class), length < 2 ? length : length - 1);
    }
  }
  state_check();
}

// B5 in each life of a part: what was taken off its bins before does not count.
static void lengths_are_true_in_each_life(void) {
  unsigned class = tsl_sizeclass_of(64);
  struct tsl_survivors none = {0};
  open_heaps();
  for (int life = 0; life < 4; life++) {
    tslab_epoch id;
    struct tsl_heap *part = blocks_open_part(heap, TSLAB_NO_CELLS, &id);
    alloc_many(64, 500);
    free_many();
    alloc_many(64, 300);
    CHECK(tsl_bin_valid(part, class));
    free_many();
    CHECK_GE(tsl_bin_length(part, class), 400);
    CHECK(tsl_bin_valid(part, class));
    tsl_heap_current = heap;
    CHECK_EQ(tsl_epoch_end(id, TSL_EPOCH_CLOSED), 0);
    CHECK(tsl_part_claim_seal(tsl_part_of(part)));
    tsl_part_seal(tsl_part_of(part), &none);
  }
}

static unsigned limit_of(size_t bytes) { return tsl_bin_limit(heap, tsl_sizeclass_of(bytes)); }
static unsigned usual_of(size_t bytes) { return tsl_bin_usual(tsl_sizeclass_of(bytes)); }

// As many frees meet a full bin as are told at a time, or more.
static void overflow(size_t bytes) {
  alloc_many(bytes, 2 * limit_of(bytes) + 40);
  free_many();
}

static void use_up(size_t bytes) {
  unsigned class = tsl_sizeclass_of(bytes);
  while (tsl_bin_length(heap, class) > 1) (void)alloc(bytes);
  while (tsl_stock_blocks(&heap->store->stocks[class]) != 0) (void)alloc(bytes);
  (void)alloc(bytes);
}

static void homes_begin_with_short_bins(void) {
  open_heaps();
  tslab_epoch id;
  CHECK_EQ(limit_of(64), 256);
  CHECK_EQ(limit_of(1024), 32);
  CHECK_EQ(limit_of(3000), 32);
  CHECK_EQ(limit_of(32000), 8);
  CHECK_EQ(tsl_bin_limit(heap, TSL_CELL_4K), tsl_bin_usual(TSL_CELL_4K));
  struct tsl_heap *part = blocks_open_part(heap, TSLAB_NO_CELLS, &id);
  (void)alloc(64);
  CHECK_EQ(tsl_bin_limit(part, tsl_sizeclass_of(64)), usual_of(64));
}

// B6
static void bins_that_overflow_grow(void) {
  for (int s = 0; s < SIZES; s++) {
    leave_few(sizes[s]);
    for (unsigned limit = limit_of(sizes[s]); limit < usual_of(sizes[s]); limit *= 2) {
      overflow(sizes[s]);
      use_up(sizes[s]);
      CHECK_EQ(limit_of(sizes[s]), tsl_at_most(2 * limit, usual_of(sizes[s])));
      state_check();
    }
    overflow(sizes[s]);
    use_up(sizes[s]);
    CHECK_EQ(limit_of(sizes[s]), usual_of(sizes[s]));
  }
}

static void learn_usual(size_t bytes) {
  leave_few(bytes);
  while (limit_of(bytes) < usual_of(bytes)) {
    overflow(bytes);
    use_up(bytes);
  }
}

// So often the bin is filled, and then emptied, with bursts of so many blocks.
static void burst(size_t bytes, unsigned count, unsigned times) {
  for (unsigned i = 0; i < times; i++) {
    block_count = 0;
    alloc_many(bytes, count);
    free_many();
  }
  use_up(bytes);
}

static void check_learns_bursts_of(size_t bytes, unsigned longest) {
  unsigned class = tsl_sizeclass_of(bytes), usual = usual_of(bytes);
  learn_usual(bytes);
  burst(bytes, 2 * usual, 4);
  CHECK_EQ(limit_of(bytes), usual);
  burst(bytes, usual + usual / 4, 8);
  CHECK_EQ(limit_of(bytes), longest);
  CHECK_EQ(tsl_bin_longest(class), longest);
  block_count = 0;
  alloc_many(bytes, usual + usual / 4);
  free_many();
  CHECK_GE(tsl_bin_length(heap, class), usual + usual / 4);
  burst(bytes, longest + usual / 4, 8);
  CHECK_EQ(limit_of(bytes), longest);
  state_check();
}

// B6: bursts a little longer than a bin of the usual length fit afterwards, much longer ones do
// not change it, and nothing grows beyond the longest.
static void bins_learn_bursts_that_nearly_fit(void) {
  check_learns_bursts_of(512, 256);
  check_learns_bursts_of(192, 682);
  check_learns_bursts_of(1024, 128);
  check_learns_bursts_of(2048, 128);
  check_learns_bursts_of(4096, 112);
  check_learns_bursts_of(16384, 24);
}

static void check_part_learns(enum tslab_place place, unsigned limit) {
  tslab_epoch_options options = {.size = sizeof options, .place = place};
  tslab_scope scope;
  CHECK_EQ(tslab_scope_enter(&scope, tslab_epoch_open("learning", &options)), 0);
  heap = tsl_heap_current;
  heap->cell_class = false;
  burst(512, usual_of(512) + usual_of(512) / 4, 8);
  CHECK_EQ(limit_of(512), limit);
  CHECK_EQ(tslab_scope_leave(&scope), 0);
}

static void parts_that_last_learn_them_too(void) {
  open_heaps();
  check_part_learns(TSLAB_PLACE_SHARED, 2 * usual_of(512));
  check_part_learns(TSLAB_PLACE_OWN, usual_of(512));
}

static void a_bin_that_was_just_filled_stays_short(void) {
  leave_few(64);
  unsigned limit = limit_of(64);
  block_count = 0;
  alloc_many(64, limit);
  free_many();
  use_up(64);
  CHECK_EQ(limit_of(64), limit);
}

// B6: where allocations take as many as are freed, the bin is counted anew less and less often.
static void bins_that_are_half_free_grow(void) {
  for (int s = 0; s < SIZES; s++) {
    leave_few(sizes[s]);
    unsigned class = tsl_sizeclass_of(sizes[s]);
    for (unsigned i = 0; i < 4 * usual_of(sizes[s]); i++) {
      tsl_fast_free(blocks[--block_count]);
      alloc_many(sizes[s], 1);
      CHECK_LE(tsl_bin_length(heap, class), 2);
    }
    CHECK_EQ(limit_of(sizes[s]), usual_of(sizes[s]));
    state_check();
  }
}

// One that is more than half full when it is counted keeps its limit.
static void bins_that_are_nearly_full_do_not(void) {
  leave_few(64);
  unsigned limit = limit_of(64);
  alloc_many(64, limit);
  for (unsigned i = 0; i < limit - 8; i++) tsl_fast_free(blocks[--block_count]);
  for (unsigned i = 0; i < 20 * limit; i++) {
    tsl_fast_free(blocks[--block_count]);
    alloc_many(64, 1);
  }
  CHECK_EQ(limit_of(64), limit);
}

// A block of another home that finds no room counts as well.
static void bins_grow_for_the_blocks_of_others(void) {
  open_heaps();
  unsigned class = tsl_sizeclass_of(3000), limit = limit_of(3000);
  tsl_heap_current = other;
  alloc_many(3000, limit + 1);
  tsl_heap_current = heap;
  free_many();
  CHECK_EQ(tsl_bin_length(heap, class), limit);
  use_up(3000);
  CHECK_EQ(limit_of(3000), 2 * limit);
}

// B6: after 1 MiB of frees the slabs get the blocks, and one free gives back no more than a quarter
// of those that are told with it.
static void frees_alone_empty_bins(void) {
  for (int s = 1; s < SIZES; s++) {
    leave_few(sizes[s]);
    unsigned class = tsl_sizeclass_of(sizes[s]), most = limit_of(sizes[s]);
    alloc_many(sizes[s], (1u << 20) / (unsigned)sizes[s] + 5 * most + 100);
    unsigned told = tsl_tally_most_untold[class];
    for (uint32_t length = 0; block_count != FEW;) {
      tsl_fast_free(blocks[--block_count]);
      uint32_t now = tsl_bin_length(heap, class);
      CHECK_LE(length, now + (told + 3) / 4);
      length = now;
    }
    CHECK_EQ(tsl_bin_length(heap, class), 1);
    CHECK_EQ(limit_of(sizes[s]), 1);
    state_check();
    use_up(sizes[s]);
    CHECK_GE(limit_of(sizes[s]), most);
    state_check();
  }
}

// B6: a limit that has sunk rises at the next refill, and not when the room is counted anew.
static void a_limit_that_has_sunk_does_not_grow(void) {
  leave_few(64);
  unsigned most = limit_of(64);
  alloc_many(64, (1u << 20) / 64 + 10 * most);
  while (limit_of(64) > most * 3 / 4) tsl_fast_free(blocks[--block_count]);
  unsigned limit = limit_of(64);
  CHECK_GE(limit, most / 2);
  alloc_many(64, limit - 2);
  for (int i = 0; i < 3; i++) tsl_fast_free(blocks[--block_count]);
  CHECK_EQ(limit_of(64), limit);
  state_check();
}

static void allocations_between_frees_keep_bins(void) {
  leave_few(64);
  unsigned limit = limit_of(64);
  alloc_many(64, 80 * limit);
  while (block_count > 100) {
    for (int i = 0; i < 30; i++) tsl_fast_free(blocks[--block_count]);
    alloc_many(64, 1);
  }
  CHECK_EQ(limit_of(64), limit);
}

// HO2
static void blocks_of_others_leave_short_bins(void) {
  open_heaps();
  unsigned class = tsl_sizeclass_of(3000), limit = limit_of(3000);
  tsl_heap_current = other;
  alloc_many(3000, limit);
  tsl_heap_current = heap;
  free_many();
  alloc_many(3000, 700);
  free_many();
  CHECK_EQ(tsl_bin_length(heap, class), 1);
  tsl_heap_current = other;
  tsl_heap_look_at_ready(other, UINT32_MAX);
  CHECK_GE(other->store->tallies[class].taken, limit - 1);
  state_check();
}

// Cells of 64 KiB are dear: fewer of them are kept than of blocks.
static void limits_follow_the_size(void) {
  CHECK_EQ(tsl_bin_usual(tsl_sizeclass_of(16)), 1024);
  CHECK_EQ(tsl_bin_usual(tsl_sizeclass_of(32768)), 8);
  CHECK_EQ(tsl_bin_longest(TSL_CELL_64K), 4);
}

int main(void) {
  RUN_UNLESS_SECURE(lengths_are_true_in_each_life);
  RUN_UNLESS_SECURE(freed_twice_in_a_row);
  RUN_UNLESS_SECURE(in_the_slab_of_a_full_bin);
  RUN_UNLESS_SECURE(deeper_on_a_bin);
  RUN_UNLESS_SECURE(written_and_freed_again);
  RUN_UNLESS_SECURE(no_word_accuses);
  RUN(random_contents_accuse_nobody);
  RUN_UNLESS_SECURE(damage_costs_one_block);
  RUN_UNLESS_SECURE(damaged_heads_are_found);
  RUN_UNLESS_SECURE(growth_looks_at_all_bins);
  RUN_UNLESS_SECURE(later_growth_looks_seldom);
  RUN_UNLESS_SECURE(growth_finds_what_was_never_handed_out);
  RUN(misaligned_addresses_are_reported);
  RUN_UNLESS_SECURE(lengths_are_true);
  RUN_UNLESS_SECURE(homes_begin_with_short_bins);
  RUN_UNLESS_SECURE(bins_that_overflow_grow);
  RUN_UNLESS_SECURE(a_bin_that_was_just_filled_stays_short);
  RUN_UNLESS_SECURE(bins_learn_bursts_that_nearly_fit);
  RUN_UNLESS_SECURE(parts_that_last_learn_them_too);
  RUN_UNLESS_SECURE(bins_that_are_half_free_grow);
  RUN_UNLESS_SECURE(bins_that_are_nearly_full_do_not);
  RUN_UNLESS_SECURE(bins_grow_for_the_blocks_of_others);
  RUN_UNLESS_SECURE(frees_alone_empty_bins);
  RUN_UNLESS_SECURE(a_limit_that_has_sunk_does_not_grow);
  RUN_UNLESS_SECURE(allocations_between_frees_keep_bins);
  RUN_UNLESS_SECURE(blocks_of_others_leave_short_bins);
  RUN_UNLESS_SECURE(limits_follow_the_size);
  return test_status();
}
