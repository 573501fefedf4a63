#include "memory/large.h"

#include "base/options.h"
#include "capture.h"
#include "memory/detention.h"
#include "memory/growth.h"
#include "memory/huge.h"
#include "memory/mirror.h"
#include "memory/purge.h"
#include "memory/segment.h"
#include "memory/units.h"
#include "os_fake.h"
#include "state.h"
#include "state/heap.h"

enum {
  ENTRY = 1 << TSL_CODE_BITS | TSL_CODE_LARGE,
  KIB = 1 << 10,
  MIB = 1 << 20,
  STEP = 16 * KIB,
  BLOCKS = 40
};

static void open_region(void) {
  os_fake.limit_bytes = OS_FAKE_MOST_BYTES;
  CHECK(tsl_region_init());
  CHECK(tsl_region_grow(1));
  CHECK_EQ(tsl_region_add_heap(), 1);  // whose name the entries bear
}

static char *alloc(size_t bytes) {
  bool clean;
  char *block = tsl_large_alloc(bytes, 1, ENTRY, &clean);
  CHECK(block != NULL);
  return block;
}

static uint32_t entry_of(const void *address) { return tsl_map_lookup(address); }

// A value every 16 KiB that depends on the place.
static void fill(char *block, size_t bytes, unsigned seed) {
  for (size_t i = 0; i < bytes; i += STEP) *(unsigned *)(block + i) = seed + (unsigned)(i / STEP);
}

static bool is_filled(const char *block, size_t bytes, unsigned seed) {
  for (size_t i = 0; i < bytes; i += STEP) {
    if (*(const unsigned *)(block + i) != seed + (unsigned)(i / STEP)) return false;
  }
  return true;
}

static void nothing_takes_a_unit(void) {
  open_region();
  CHECK_EQ(tsl_large_bytes(alloc(0)), TSL_UNIT_BYTES);
}

static void whole_units(void) {
  static const size_t sizes[] = {1, 64 * KIB - 1, 64 * KIB, 64 * KIB + 1, MIB + 1, 40 * MIB};
  open_region();
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    size_t free = tsl_units_free(), open = tsl_units_open();
    char *block = alloc(sizes[i]);
    CHECK_EQ((uintptr_t)block % TSL_UNIT_BYTES, 0);
    CHECK_EQ(tsl_large_bytes(block), tsl_round_up(sizes[i], TSL_UNIT_BYTES));
    CHECK_EQ(entry_of(block), ENTRY);
    if (sizes[i] > TSL_UNIT_BYTES) CHECK_EQ(entry_of(block + TSL_UNIT_BYTES), 0);
    fill(block, tsl_large_bytes(block), 1);
    state_check();
    tsl_large_free(block);
    CHECK_EQ(entry_of(block), 0);
    CHECK_EQ(tsl_units_free() - free, tsl_units_open() - open);
  }
}

static void aligned(void) {
  bool clean;
  open_region();
  for (size_t alignment = 1; alignment <= 64 * MIB; alignment *= 2) {
    char *block = tsl_large_alloc(3 * TSL_UNIT_BYTES, alignment, ENTRY, &clean);
    CHECK(block != NULL);
    CHECK_EQ((uintptr_t)block & (alignment - 1), 0);
    CHECK_EQ(tsl_large_bytes(block), 3 * TSL_UNIT_BYTES);
  }
  state_check();
}

static void clean_only_when_zero(void) {
  bool clean = false;
  open_region();
  char *block = tsl_large_alloc(MIB, 1, ENTRY, &clean);
  CHECK(clean);
  fill(block, MIB, 1);
  tsl_large_free(block);
  CHECK(tsl_large_alloc(MIB, 1, ENTRY, &clean) == block);
  CHECK(!clean);
}

static void out_of_memory(void) {
  bool clean;
  open_region();
  CHECK(tsl_large_alloc(OS_FAKE_MOST_BYTES, 1, ENTRY, &clean) == NULL);
  CHECK(tsl_large_alloc(PTRDIFF_MAX, 1, ENTRY, &clean) == NULL);
  os_fake_fail_all(OS_FAKE_COMMIT);
  CHECK(tsl_large_alloc(OS_FAKE_MOST_BYTES / 2, 1, ENTRY, &clean) == NULL);
  state_check();
}

static void resized_in_place(void) {
  open_region();
  char *block = alloc(4 * MIB);
  CHECK(tsl_region_grow(64));
  fill(block, 4 * MIB, 3);
  CHECK(tsl_large_resize(block, 6 * MIB + 1));
  CHECK_EQ(tsl_large_bytes(block), 6 * MIB + TSL_UNIT_BYTES);
  CHECK(is_filled(block, 4 * MIB, 3));
  fill(block, 6 * MIB, 3);
  state_check();
  size_t free = tsl_units_free();
  CHECK(tsl_large_resize(block, 2 * MIB - 1));
  CHECK_EQ(tsl_large_bytes(block), 2 * MIB);
  CHECK_EQ(tsl_units_free(), free + 4 * MIB / TSL_UNIT_BYTES + 1);
  CHECK(is_filled(block, 2 * MIB, 3));
  CHECK(tsl_large_resize(block, 2 * MIB - 5));
  CHECK_EQ(tsl_large_bytes(block), 2 * MIB);
  state_check();
  tsl_large_free(block);
  state_check();
}

static void growth_in_place_brings_huge_pages(void) {
  open_region();
  char *block = alloc(3 * MIB);
  CHECK(tsl_region_grow(64));
  CHECK_EQ(os_fake_huge_bytes(block, 3 * MIB), 0);
  CHECK(tsl_large_resize(block, 7 * MIB));
  CHECK_LE(4 * MIB, os_fake_huge_bytes(block, 7 * MIB));
}

static void check_small_at(const char *end) {
  CHECK(!tsl_huge_at(tsl_unit_of(end - 1)) || (uintptr_t)end % (2 * MIB) == 0);
}

// The steps in which a block ends have small pages, whatever became of the block.
static void huge_pages_follow_the_length(void) {
  open_region();
  char *block = alloc(20 * MIB);
  CHECK(tsl_large_resize(block, 9 * MIB));
  check_small_at(block + 9 * MIB);
  CHECK_LE(6 * MIB, os_fake_huge_bytes(block, 9 * MIB));
  CHECK(tsl_large_resize(block, 3 * MIB));
  CHECK_EQ(os_fake_huge_bytes(block, 3 * MIB), 0);
}

static void huge_pages_follow_a_move(void) {
  for (int refused = 0; refused < 2; refused++) {
    if (refused == 0) open_region();
    char *block = alloc(8 * MIB);
    if (refused != 0) os_fake_fail_next(OS_FAKE_MOVE);
    char *moved = tsl_large_move(block, 12 * MIB);
    CHECK(moved != NULL && moved != block);
    check_small_at(moved + 12 * MIB);
    CHECK_LE(8 * MIB, os_fake_huge_bytes(moved, 12 * MIB));
    tsl_large_free(moved);
  }
}

// From a part of a segment over its end and back.
static void resized_over_segments(void) {
  const size_t segment = TSL_UNIT_BYTES * TSL_SEGMENT_UNITS;
  open_region();
  char *block = alloc(4 * MIB);
  fill(block, 4 * MIB, 3);
  while (tsl_units_open() < 3 * TSL_SEGMENT_UNITS) CHECK(tsl_region_grow(1));
  CHECK(tsl_large_resize(block, 2 * segment));
  CHECK(is_filled(block, 4 * MIB, 3));
  fill(block, 2 * segment, 3);
  state_check();
  CHECK(tsl_large_resize(block, segment + segment / 2));
  CHECK(is_filled(block, segment + segment / 2, 3));
  state_check();
  CHECK(tsl_large_resize(block, MIB));
  CHECK(is_filled(block, MIB, 3));
  state_check();
}

static void no_room_to_grow(void) {
  open_region();
  char *block = alloc(MIB), *next = alloc(MIB);
  if (!TSL_SECURE) CHECK(next == block + MIB);
  fill(block, MIB, 3);
  size_t free = tsl_units_free();
  CHECK(!tsl_large_resize(block, MIB + 1));
  CHECK(!tsl_large_resize(block, PTRDIFF_MAX));
  CHECK_EQ(tsl_large_bytes(block), MIB);
  CHECK_EQ(tsl_units_free(), free);
  tsl_large_free(next);
  CHECK(tsl_large_resize(block, 2 * MIB));
  CHECK(is_filled(block, MIB, 3));
  state_check();
}

static void moved(void) {
  open_region();
  char *block = alloc(4 * MIB);
  fill(block, 4 * MIB, 5);
  char *other = tsl_large_move(block, 9 * MIB);
  CHECK(other != NULL && other != block);
  CHECK_EQ(tsl_large_bytes(other), 9 * MIB);
  CHECK(is_filled(other, 4 * MIB, 5));
  CHECK_EQ(entry_of(other), ENTRY);
  CHECK_EQ(entry_of(block), 0);
  CHECK_EQ(os_fake.calls[OS_FAKE_MOVE], 1);
  fill(other, 9 * MIB, 5);
  state_check();
  tsl_large_free(other);
  state_check();
}

static void small_blocks_are_copied(void) {
  enum { LEAST = 512 * KIB, LESS = LEAST - TSL_UNIT_BYTES };
  open_region();
  char *small = alloc(LESS), *block = alloc(LEAST);
  fill(small, LESS, 5);
  CHECK(tsl_large_move(block, LEAST / 2) == NULL);
  CHECK(tsl_large_move(block, LEAST) == NULL);
  char *copied = tsl_large_move(small, MIB);
  CHECK(copied != NULL && is_filled(copied, LESS, 5));
  CHECK_EQ(os_fake.calls[OS_FAKE_MOVE], 0);
  CHECK(tsl_large_move(block, 4 * MIB) != NULL);
  CHECK_EQ(os_fake.calls[OS_FAKE_MOVE], 1);
  CHECK_EQ(os_fake.calls[OS_FAKE_RENEW], 0);
  state_check();
}

// 16 MiB of which every page holds memory, and nobody has them.
static char *free_dirty(void) {
  char *block = alloc(16 * MIB);
  memset(block, 1, 16 * MIB);
  tsl_large_free(block);
  return block;
}

// Memory that is there is used: no page of it goes back, none is made.
static void blocks_are_copied_to_memory(void) {
  open_region();
  char *block = alloc(3 * MIB), *large = alloc(4 * MIB);
  fill(block, 3 * MIB, 5);
  char *dirty = free_dirty();
  size_t purged = os_fake.purged_bytes;
  CHECK(tsl_large_move(block, 3 * MIB + TSL_UNIT_BYTES) == dirty);
  CHECK(is_filled(dirty, 3 * MIB, 5));
  CHECK_EQ(os_fake.calls[OS_FAKE_MOVE], 0);
  CHECK_EQ(os_fake.purged_bytes, purged);
  CHECK_EQ(dirty[3 * MIB + 12 * TSL_UNIT_BYTES], 1);  // in the room
  CHECK(tsl_large_move(large, 8 * MIB) != NULL);
  CHECK_EQ(os_fake.calls[OS_FAKE_MOVE], 1);
  state_check();
}

// Their places read as zero, as what was never used.
static void places_left_by_moves_are_clean(void) {
  bool clean = false;
  open_region();
  char *block = alloc(MIB);
  fill(block, MIB, 5);
  char *second = tsl_large_move(block, 2 * MIB), *third = tsl_large_move(second, 4 * MIB);
  CHECK_EQ(os_fake.calls[OS_FAKE_MOVE], 2);
  CHECK_EQ(tsl_units_dirty(), 0);
  CHECK(is_filled(third, MIB, 5));
  CHECK(tsl_large_alloc(MIB, 1, ENTRY, &clean) == block && clean && *block == 0);
  CHECK(tsl_large_alloc(2 * MIB, 1, ENTRY, &clean) == second && clean && *second == 0);
  state_check();
}

// A block that moved because it grew by steps grows where it is for a quarter of its size, in units
// that are nobody's until then, and hold no memory where pages were moved.
static void room_behind_what_moved(void) {
  enum { BYTES = 4 * MIB + 512 * KIB, ROOM = BYTES / 4, ALL = BYTES + ROOM };
  open_region();
  char *before = alloc(16 * MIB), *block = alloc(4 * MIB), *next = alloc(MIB);
  memset(before, 1, 16 * MIB);
  tsl_large_free(before);
  CHECK(next == block + 4 * MIB);
  block = tsl_large_move(block, BYTES);
  CHECK(block == before);
  CHECK(block[BYTES] == 0 && block[ALL - 1] == 0);
  CHECK_EQ(tsl_large_bytes(block), BYTES);
  CHECK_EQ(tsl_counts.large_bytes, BYTES + MIB);
  CHECK(alloc(6 * MIB) == block + ALL);
  state_check();
  CHECK(tsl_large_resize(block, BYTES + 1));
  CHECK(tsl_large_resize(block, ALL));
  CHECK(!tsl_large_resize(block, ALL + 1));
  CHECK_EQ(tsl_counts.large_bytes, ALL + 7 * MIB);
  fill(block, ALL, 7);
  CHECK(tsl_large_resize(block, BYTES));
  CHECK(alloc(ROOM) == block + BYTES);
  state_check();
}

static void no_room_behind_what_grew_much(void) {
  open_region();
  char *block = tsl_large_move(alloc(MIB), MIB + 3 * TSL_UNIT_BYTES);
  char *next = alloc(4 * MIB);
  CHECK(next == block + MIB + 3 * TSL_UNIT_BYTES);
  state_check();
}

// What does not fit with room may fit without.
static void no_memory_for_room(void) {
  open_region();
  CHECK(tsl_region_grow(400));
  char *block = alloc(4 * MIB), *last = NULL;
  bool clean;
  os_fake_fail_all(OS_FAKE_COMMIT);
  while (tsl_units_free() > 130) last = alloc(TSL_UNIT_BYTES);
  CHECK(last != NULL);
  char *moved = tsl_large_move(block, 130 * TSL_UNIT_BYTES);
  CHECK(moved != NULL);
  CHECK_EQ(tsl_units_free(), 4 * MIB / TSL_UNIT_BYTES);
  CHECK(!tsl_large_resize(moved, 131 * TSL_UNIT_BYTES));
  CHECK(tsl_large_alloc(8 * MIB, 1, ENTRY, &clean) == NULL);
  state_check();
}

static void refused_move_copies(void) {
  open_region();
  char *block = alloc(4 * MIB);
  fill(block, 4 * MIB, 5);
  CHECK(tsl_region_grow(9 * MIB / TSL_UNIT_BYTES));
  os_fake_fail_next(OS_FAKE_MOVE);
  block = tsl_large_move(block, 9 * MIB);
  CHECK_EQ(os_fake.calls[OS_FAKE_MOVE], 1);
  CHECK(is_filled(block, 4 * MIB, 5));
  CHECK_EQ(tsl_large_bytes(block), 9 * MIB);
  CHECK_EQ(entry_of(block), ENTRY);
  state_check();
  os_fake_fail_all(OS_FAKE_COMMIT);
  CHECK(tsl_large_move(block, OS_FAKE_MOST_BYTES) == NULL);
  CHECK(is_filled(block, 4 * MIB, 5));
  state_check();
}

// What the system took for good is nobody's: the fake stops who touches it.
static void lost_place_is_left_alone(void) {
  open_region();
  char *block = alloc(4 * MIB);
  fill(block, 4 * MIB, 5);
  os_fake.places_get_lost = true;
  os_fake_fail_next(OS_FAKE_MOVE);
  CHECK(tsl_large_move(block, 9 * MIB) == NULL);
  CHECK(is_filled(block, 4 * MIB, 5));
  size_t lost = tsl_units_open() - state_owned_units() - tsl_units_free();
  CHECK_GE(lost, 4 * MIB / TSL_UNIT_BYTES);
  for (int i = 0; i < 20; i++) fill(alloc(3 * MIB), 3 * MIB, 6);
  tsl_large_free(block);
  tsl_purge_all(0);
  state_check_segments();
}

// Moves the block on, a unit larger for the time of the move; the copies are those that asked the
// system for nothing.
static char *move_on(char *block, unsigned *copies) {
  uint64_t moves = os_fake.calls[OS_FAKE_MOVE];
  fill(block, 4 * MIB, (unsigned)moves);
  char *next = tsl_large_move(block, 4 * MIB + TSL_UNIT_BYTES);
  CHECK(next != NULL && is_filled(next, 4 * MIB, (unsigned)moves));
  CHECK(tsl_large_resize(next, 4 * MIB));
  *copies += os_fake.calls[OS_FAKE_MOVE] == moves;
  return next;
}

// However often a block moved, it is copied once in 65 times, for the sake of mappings, and
// somewhat more often where it comes to places of pieces.
static void moves_never_come_to_an_end(void) {
  unsigned copies = 0;
  open_region();
  char *block = alloc(4 * MIB);
  for (int i = 0; i < 650; i++) block = move_on(block, &copies);
  CHECK_LE(650 / 65, copies);
  CHECK_LE(copies, 650 / 33);
  state_check();
}

// What was moved, and lives, has a limit; freeing makes room below it.
static void pieces_are_bounded(void) {
  enum { CROWD = 2048 / 64, LAST = CROWD - 1 };
  static char *crowd[CROWD];
  unsigned copies = 0, more = 0;
  open_region();
  for (int i = 0; i < CROWD; i++) crowd[i] = alloc(4 * MIB);
  for (int i = 0; i < CROWD * 64; i++) crowd[i / 64] = move_on(crowd[i / 64], &copies);
  CHECK_EQ(copies, 0);
  char *late = move_on(alloc(4 * MIB), &copies);
  CHECK_EQ(copies, 1);
  tsl_large_free(crowd[LAST]);
  for (int i = 0; i < 64; i++) late = move_on(late, &more);
  CHECK_EQ(more, 0);
  move_on(alloc(4 * MIB), &more);
  CHECK_EQ(more, 1);
  state_check();
}

// Small blocks leave half of the pieces to others.
static void small_blocks_take_half_of_the_pieces(void) {
  enum { SMALL = 512 * KIB, MANY = 2048 / 2 };
  open_region();
  for (int i = 0; i < MANY; i++) CHECK(tsl_large_move(alloc(SMALL), 2 * SMALL) != NULL);
  CHECK_EQ(os_fake.calls[OS_FAKE_MOVE], MANY);
  CHECK(tsl_large_move(alloc(SMALL), 2 * SMALL) != NULL);
  CHECK_EQ(os_fake.calls[OS_FAKE_MOVE], MANY);
  CHECK(tsl_large_move(alloc(2 * MIB), 3 * MIB) != NULL);
  CHECK_EQ(os_fake.calls[OS_FAKE_MOVE], MANY + 1);
  state_check();
}

// What was moved keeps its memory when it is freed, and is one mapping with its neighbours again
// when that goes back.
static void moved_places_are_renewed_when_purged(void) {
  open_region();
  char *first = alloc(4 * MIB), *block = tsl_large_move(first, 8 * MIB);
  size_t purged = os_fake.purged_bytes;
  CHECK(tsl_large_resize(block, 6 * MIB));
  tsl_large_free(block);
  CHECK_EQ(os_fake.calls[OS_FAKE_RENEW], 0);
  CHECK_EQ(os_fake.purged_bytes, purged);
  CHECK_EQ(tsl_segments_moved_units(), 8 * MIB / TSL_UNIT_BYTES);
  CHECK(alloc(12 * MIB) == first);
  tsl_large_free(first);
  tsl_purge_all(0);
  CHECK_LE(1, os_fake.calls[OS_FAKE_RENEW]);
  CHECK_EQ(tsl_segments_moved_units(), 0);
  CHECK_EQ(tsl_units_dirty(), 0);
  state_check();
  uint64_t renewed = os_fake.calls[OS_FAKE_RENEW];
  tsl_large_free(alloc(8 * MIB));
  tsl_purge_all(0);
  CHECK_EQ(os_fake.calls[OS_FAKE_RENEW], renewed);
}

// Each of them may cost a mapping.
static void few_moved_places_wait_for_a_purge(void) {
  enum { MOST = 256 * MIB };
  open_region();
  char *first = tsl_large_move(alloc(4 * MIB), MOST), *second;
  second = tsl_large_move(alloc(4 * MIB), 8 * MIB);
  tsl_large_free(first);
  CHECK_EQ(os_fake.calls[OS_FAKE_RENEW], 0);
  tsl_large_free(second);
  CHECK_EQ(os_fake.calls[OS_FAKE_RENEW], 1);
  CHECK_EQ(tsl_units_dirty(), MOST / TSL_UNIT_BYTES);
  state_check();
}

// Nothing free has memory there, and other blocks have guards.
static void moved_places_are_renewed_at_once(void) {
  open_region();
  char *block = tsl_large_move(alloc(4 * MIB), 8 * MIB);
  CHECK_EQ(os_fake.calls[OS_FAKE_RENEW], 0);
  CHECK(tsl_large_resize(block, 6 * MIB));
  CHECK_EQ(os_fake.calls[OS_FAKE_RENEW], 1);
  block = tsl_large_move(block, 9 * MIB);
  CHECK_EQ(os_fake.calls[OS_FAKE_RENEW], 2);
  os_fake_fail_next(OS_FAKE_GUARD);
  tsl_large_free(block);
  CHECK_EQ(os_fake.calls[OS_FAKE_RENEW], 2);
  tsl_detention_retry();
  CHECK_EQ(os_fake.calls[OS_FAKE_RENEW], 3);
  CHECK_EQ(tsl_segments_moved_units(), 0);
  state_check();
}

// A place of `units` to which pages were moved, and which is free.
static char *free_moved(size_t units) {
  char *block = tsl_large_move(alloc(MIB), units * TSL_UNIT_BYTES);
  tsl_large_free(block);
  CHECK_EQ(tsl_segments_moved_units(), units);
  return block;
}

// Each unit of such a place may be a mapping of its own, so a block there has as many pieces.
static void move_from_moved(unsigned units, bool copied) {
  open_region();
  const char *place = free_moved(units);
  char *block = alloc((units + 16) * TSL_UNIT_BYTES);  // from where the first block was
  CHECK(block + MIB == place);
  CHECK(tsl_large_resize(block, 5 * MIB));
  fill(block, 5 * MIB, 5);
  CHECK_EQ(os_fake.calls[OS_FAKE_MOVE], 1);
  CHECK(is_filled(tsl_large_move(block, 8 * MIB), 5 * MIB, 5));
  CHECK_EQ(os_fake.calls[OS_FAKE_MOVE], copied ? 1 : 2);
  CHECK_EQ(os_fake.calls[OS_FAKE_RENEW], copied ? 0 : 1);
  CHECK_EQ(tsl_segments_moved_units(), copied ? units : 0);
  state_check();
}

static void few_moved_units_are_so_many_pieces(void) { move_from_moved(63, false); }
static void many_moved_units_are_copied(void) { move_from_moved(64, true); }

// Pages are moved to one mapping.
static void move_to_moved(bool refused) {
  open_region();
  char *block = alloc(5 * MIB);
  fill(block, 5 * MIB, 5);
  free_moved(112);
  if (refused) os_fake_fail_next(OS_FAKE_RENEW);
  char *moved = tsl_large_move(block, 8 * MIB);
  CHECK_EQ(os_fake.calls[OS_FAKE_RENEW], 1);
  CHECK_EQ(tsl_segments_moved_units(), 0);
  CHECK((moved == NULL) == refused);
  CHECK(is_filled(refused ? block : moved, 5 * MIB, 5));
  CHECK_EQ(os_fake.calls[OS_FAKE_MOVE], refused ? 1 : 2);
  state_check_segments();
}

static void moved_places_are_renewed_before_pages_come(void) { move_to_moved(false); }
static void what_cannot_be_renewed_stays(void) { move_to_moved(true); }

// The fake stops who touches it.
static void check_lost(size_t units) {
  size_t lost = tsl_units_open() - state_owned_units() - tsl_units_free();
  CHECK_EQ(lost, units);
  for (int i = 0; i < 20; i++) fill(alloc(3 * MIB), 3 * MIB, 6);
  tsl_purge_all(0);
  state_check_segments();
}

static void places_not_renewed_are_left_alone(void) {
  open_region();
  char *block = tsl_large_move(alloc(4 * MIB), 8 * MIB);
  tsl_large_free(block);
  CHECK_EQ(entry_of(block), 0);
  os_fake_fail_next(OS_FAKE_RENEW);
  tsl_purge_all(0);
  check_lost(8 * MIB / TSL_UNIT_BYTES);
}

static void places_not_renewed_at_once_are_left_alone(void) {
  open_region();
  char *block = tsl_large_move(alloc(4 * MIB), 8 * MIB);
  os_fake_fail_next(OS_FAKE_RENEW);
  CHECK(tsl_large_move(block, 12 * MIB) != NULL);
  check_lost(8 * MIB / TSL_UNIT_BYTES + TSL_SECURE);
}

// What a large block leaves free is purged in time.
static void free_ticks(void) {
  open_region();
  tsl_options.purge_delay_ms = 1;
  tsl_large_free(alloc(MIB));
  os_fake.now_ms += 10;
  tsl_large_free(alloc(8 * MIB));
  os_fake.now_ms += 10;
  tsl_large_free(alloc(TSL_UNIT_BYTES));
  CHECK_LE(4 * MIB, os_fake.purged_bytes);  // a late step makes up for four,
  CHECK_LE(os_fake.purged_bytes, 6 * MIB);  // and a huge page goes back whole
}

static struct {
  char *address;
  size_t bytes;
  unsigned seed;
} blocks[BLOCKS];

static void random_change(size_t i, size_t bytes, bool move) {
  char *to = blocks[i].address;
  CHECK(is_filled(to, blocks[i].bytes, blocks[i].seed));
  if (move) to = tsl_large_move(to, bytes);
  if (!move && !tsl_large_resize(to, bytes)) to = NULL;
  if (to == NULL) return;
  size_t kept = bytes < blocks[i].bytes ? bytes : blocks[i].bytes;
  CHECK(is_filled(to, kept, blocks[i].seed));
  blocks[i].address = to;
  blocks[i].bytes = bytes;
  fill(to, bytes, blocks[i].seed);
}

static void random_step(uint64_t *seed) {
  bool clean;
  size_t i = test_random_below(seed, BLOCKS);
  size_t bytes = 1 + test_random_below(seed, test_random_below(seed, 30) == 0 ? 40 * MIB : 3 * MIB);
  unsigned what = test_random_below(seed, 4);
  if (test_random_below(seed, 3) == 0) os_fake_fail_next(OS_FAKE_FALLIBLE);
  if (blocks[i].address == NULL) {
    blocks[i].address = tsl_large_alloc(bytes, 1, ENTRY, &clean);
    blocks[i].bytes = blocks[i].address == NULL ? 0 : bytes;
    blocks[i].seed = test_random_below(seed, 1000);
    if (clean) CHECK(blocks[i].address == NULL || *blocks[i].address == 0);
    fill(blocks[i].address, blocks[i].bytes, blocks[i].seed);
  } else if (what <= 1) {
    random_change(i, bytes, what == 1);
  } else {
    CHECK(is_filled(blocks[i].address, blocks[i].bytes, blocks[i].seed));
    tsl_large_free(blocks[i].address);
    blocks[i].address = NULL;
  }
}

static void random_operations(void) {
  uint64_t seed = 5;
  open_region();
  for (int step = 0; step < 400; step++) {
    check_context_set("step %d", step);
    random_step(&seed);
    os_fake.now_ms += 3;
    state_check();
  }
}

static char *watched;
static void write_behind_watched(void) { *(volatile char *)(watched + MIB) = 1; }

// The secure build's blocks end in a guard, wherever their end moves to.
static void overflows_fault(void) {
  open_region();
  watched = alloc(MIB);
  CHECK(tsl_region_grow(64));
  CHECK(capture_child(write_behind_watched) != 0);
  CHECK(tsl_large_resize(watched, 2 * MIB));
  CHECK_EQ(capture_child(write_behind_watched), 0);
  CHECK(tsl_large_resize(watched, MIB));
  CHECK(capture_child(write_behind_watched) != 0);
  fill(watched, MIB, 3);
  state_check();
}

// What the system does not open waits, and goes back when it does.
static void a_guard_that_stays_is_tried_again(void) {
  open_region();
  char *block = alloc(16 * MIB);
  size_t free = tsl_units_free();
  os_fake_fail_all(OS_FAKE_GUARD);
  tsl_large_free(block);
  CHECK_EQ(tsl_units_free(), free);
  state_check();
  os_fake_recover();
  tsl_detention_retry();
  CHECK_EQ(tsl_units_free(), free + 16 * MIB / TSL_UNIT_BYTES + 1);
  state_check();
}

// Free units of the secure build are zero, those that a block gave back among them.
static void what_shrinks_is_wiped(void) {
  open_region();
  char *block = alloc(MIB);
  fill(block, MIB, 3);
  CHECK(tsl_large_resize(block, TSL_UNIT_BYTES));
  const char *rest = block + 2 * TSL_UNIT_BYTES;
  for (size_t i = 0; i < MIB - 2 * TSL_UNIT_BYTES; i++) CHECK_EQ(rest[i], 0);
}

int main(void) {
  if (TSL_SECURE) RUN(overflows_fault);
  if (TSL_SECURE) RUN(a_guard_that_stays_is_tried_again);
  if (TSL_SECURE) RUN(what_shrinks_is_wiped);
  RUN(nothing_takes_a_unit);
  RUN(whole_units);
  RUN(aligned);
  RUN(clean_only_when_zero);
  RUN(out_of_memory);
  RUN(resized_in_place);
  RUN(growth_in_place_brings_huge_pages);
  RUN(huge_pages_follow_the_length);
  RUN(huge_pages_follow_a_move);
  RUN(resized_over_segments);
  RUN(no_room_to_grow);
  RUN(moved);
  RUN(small_blocks_are_copied);
  RUN_UNLESS_SECURE(blocks_are_copied_to_memory);
  RUN_UNLESS_SECURE(places_left_by_moves_are_clean);
  RUN_UNLESS_SECURE(room_behind_what_moved);
  RUN_UNLESS_SECURE(no_room_behind_what_grew_much);
  RUN_UNLESS_SECURE(no_memory_for_room);
  RUN(refused_move_copies);
  RUN(lost_place_is_left_alone);
  RUN(moves_never_come_to_an_end);
  RUN(pieces_are_bounded);
  RUN(small_blocks_take_half_of_the_pieces);
  if (TSL_SECURE) RUN(moved_places_are_renewed_at_once);
  RUN_UNLESS_SECURE(moved_places_are_renewed_when_purged);
  RUN_UNLESS_SECURE(few_moved_places_wait_for_a_purge);
  RUN_UNLESS_SECURE(few_moved_units_are_so_many_pieces);
  RUN_UNLESS_SECURE(many_moved_units_are_copied);
  RUN_UNLESS_SECURE(moved_places_are_renewed_before_pages_come);
  RUN_UNLESS_SECURE(what_cannot_be_renewed_stays);
  RUN_UNLESS_SECURE(places_not_renewed_are_left_alone);
  RUN(places_not_renewed_at_once_are_left_alone);
  RUN_UNLESS_SECURE(free_ticks);
  RUN(random_operations);
  return test_status();
}
