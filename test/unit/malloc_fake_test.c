#include "alloc/malloc.h"

#include "alloc/realloc.h"
#include "base/options.h"
#include "capture.h"
#include "memory/large.h"
#include "memory/units.h"
#include "os_fake.h"
#include "pattern.h"
#include "state.h"
#include "takes.h"

static void *alloc(size_t bytes) {
  void *block = tsl_fast_malloc(bytes);
  CHECK(block != NULL);
  CHECK_EQ((uintptr_t)block % 16, 0);
  pattern_write(block, bytes, (unsigned)bytes);
  return block;
}

static void every_size(void) {
  for (size_t bytes = 0; bytes <= (size_t)1 << 20; bytes += bytes / 64 + 1) {
    void *block = alloc(bytes);
    CHECK_GE(tsl_usable(block), bytes);
    CHECK_EQ(tsl_usable(block), tsl_good_size(bytes));
    CHECK(pattern_is(block, bytes, (unsigned)bytes, bytes));
    if (bytes % 3 == 0) tsl_fast_free(block);
  }
  state_check();
}

static void size_zero_is_a_block(void) {
  void *one = tsl_fast_malloc(0), *two = tsl_fast_malloc(0);
  CHECK(one != NULL && two != NULL && one != two);
  CHECK_EQ(tsl_usable(one), TSL_SECURE ? 0 : 16);
}

static void impossible_sizes(void) {
  CHECK_REFUSED(tsl_fast_malloc(SIZE_MAX), ENOMEM);
  CHECK_REFUSED(tsl_fast_malloc((size_t)PTRDIFF_MAX + 1), ENOMEM);
  CHECK_REFUSED(tsl_fast_malloc(PTRDIFF_MAX), ENOMEM);
  CHECK_REFUSED(tsl_fast_malloc(tsl_region.span_bytes), ENOMEM);
  CHECK_REFUSED(tsl_malloc_large(1, (size_t)1 << 63, NULL), ENOMEM);
  CHECK_REFUSED(tsl_calloc_large(SIZE_MAX), ENOMEM);
  alloc(100);
  state_check();
}

static void first_call(size_t bytes) {
  os_fake_fail_all(OS_FAKE_PLACE);
  os_fake_fail_all(OS_FAKE_RESERVE);
  CHECK_REFUSED(tsl_fast_malloc(bytes), ENOMEM);
  os_fake_recover();
  os_fake_fail_all(OS_FAKE_COMMIT);
  CHECK_REFUSED(tsl_fast_malloc(bytes), ENOMEM);
  os_fake_recover();
  errno = EDOM;
  alloc(bytes);
  CHECK_EQ(errno, EDOM);
  state_check();
}
static void first_call_tiny(void) { first_call(1); }
static void first_call_medium(void) { first_call(5000); }
static void first_call_large(void) { first_call(500000); }

static void first_call_reads_the_environment(void) {
  os_fake_setenv("TSLAB_CONF", "cache_units:3");
  os_fake_setenv("TSLAB_RESERVE", "32M");
  alloc(1);
  CHECK_EQ(tsl_option(cache_units), 3);
  CHECK_EQ(tsl_region.span_bytes, (size_t)32 << 20);
}

static void free_before_the_first_call(void) {
  tsl_fast_free(NULL);
  CHECK_EQ(tsl_region.span_bytes, 0);
  CHECK_EQ(tsl_usable(NULL), 0);
}

static void recycled_large_block_is_zeroed(void) {
  const size_t bytes = 300000;
  char *block = tsl_calloc_large(bytes);
  CHECK(pattern_is_zero(block, bytes));
  memset(block, 1, bytes);
  tsl_fast_free(block);
  char *again = tsl_calloc_large(bytes - 5000);
  CHECK(again == block);
  for (size_t i = 0; i < bytes - 5000; i++) {
    if (again[i] != 0) CHECK_EQ(again[i], 0);
  }
}

static void large_blocks_come_back(void) {
  void *block = alloc(1000000);
  CHECK_EQ(tsl_usable(block), 16 * TSL_UNIT_BYTES);
  size_t free = tsl_units_free();
  tsl_fast_free(block);
  CHECK_EQ(tsl_units_free(), free + 16 + TSL_SECURE);  // with its guard
  state_check();
}

// What was freed serves any size before memory is out, wherever it waits.
static void freed_memory_serves_any_size(void) {
  static const size_t sizes[] = {1, 64, 1000, 5000, 30000, 3 << 20};
  static void *blocks[1 << 20];
  tsl_options.reserve = (size_t)16 << 20;
  for (size_t i = 0; i < 3 * sizeof sizes / sizeof *sizes; i++) {
    size_t count = 0, bytes = sizes[i * 5 % (sizeof sizes / sizeof *sizes)];
    for (void *block; (block = tsl_fast_malloc(bytes)) != NULL;) blocks[count++] = block;
    check_context_set("%zu blocks of %zu bytes", count, bytes);
    CHECK_GE(count * takes(bytes), (size_t)9 << 20);
    CHECK_EQ(errno, ENOMEM);
    state_check();
    while (count != 0) tsl_fast_free(blocks[--count]);
  }
}

static void freed_medium_blocks_serve_smaller_ones(void) {
  static void *blocks[1 << 12];
  size_t count = 0;
  tsl_options.reserve = (size_t)16 << 20;
  while ((blocks[count] = tsl_fast_malloc(30000)) != NULL) count++;
  while (count != 0) tsl_fast_free(blocks[--count]);
  const struct tsl_sizeclass *class = &tsl_sizeclasses[takes_class(5000)];
  CHECK_EQ(class->units, 1);
  while (tsl_fast_malloc(5000) != NULL) count++;
  CHECK_GE(count, (tsl_units_open() - 2) * class->capacity);
}

static void free_keeps_errno(void) {
  void *tiny = alloc(1), *medium = alloc(9000), *large = alloc(100000);
  errno = EDOM;
  tsl_fast_free(tiny);
  tsl_fast_free(medium);
  tsl_fast_free(large);
  CHECK_EQ(errno, EDOM);
}

static bool is_reported(void *block, const char *what) {
  tsl_options.on_error = TSL_ON_ERROR_REPORT;
  capture_start();
  tsl_fast_free(block);
  const char *said = capture_end();
  return capture_lines(said) == 1 && strstr(said, what) != NULL;
}

static void foreign_pointers_are_named(void) {
  int local = 0;
  alloc(1);
  CHECK(is_reported(&local, "not a block of this allocator"));
  CHECK(is_reported((void *)1, "not a block of this allocator"));
  CHECK(is_reported((void *)UINTPTR_MAX, "not a block of this allocator"));
  CHECK(is_reported((void *)tsl_region.base, "not a block of this allocator"));
  CHECK(is_reported((void *)(tsl_region.base + tsl_region.span_bytes), "not a block"));
  state_check();
}

static void misused_large_blocks_are_named(void) {
  char *block = alloc(200000);
  CHECK(is_reported(block + 16, "not the beginning of a block"));
  CHECK(is_reported(block + TSL_UNIT_BYTES, "not a block of this allocator"));
  CHECK_EQ(tsl_usable(block), 4 * TSL_UNIT_BYTES);
  tsl_fast_free(block);
  CHECK(is_reported(block, "not a block of this allocator"));
  state_check();
}

static void free_foreign(void) { tsl_fast_free(&tsl_options); }

static void misuse_aborts_unless_told_otherwise(void) {
  alloc(1);
  CHECK(capture_aborts(free_foreign));
  CHECK(strstr(capture_text, "tslab: free(0x") != NULL);
  tsl_options.on_error = TSL_ON_ERROR_IGNORE;
  CHECK_EQ(capture_child(free_foreign), 0);
}

// A program that frees as it should never hears of us.
static void silence(void) {
  void *blocks[200];
  capture_start();
  for (unsigned round = 0; round < 20; round++) {
    for (unsigned i = 0; i < 200; i++) blocks[i] = tsl_fast_malloc((i * i * round) % 70000);
    for (unsigned i = 0; i < 200; i++) tsl_fast_free(blocks[(i * 7) % 200]);
  }
  CHECK_EQ(strlen(capture_end()), 0);
  tsl_trim(0);
  state_check();
  CHECK_EQ(state_owned_units(), 0);
}

int main(void) {
  RUN(every_size);
  RUN(size_zero_is_a_block);
  RUN(impossible_sizes);
  RUN(first_call_tiny);
  RUN(first_call_medium);
  RUN(first_call_large);
  RUN(first_call_reads_the_environment);
  RUN(free_before_the_first_call);
  RUN(recycled_large_block_is_zeroed);
  RUN(large_blocks_come_back);
  RUN(freed_memory_serves_any_size);
  RUN(freed_medium_blocks_serve_smaller_ones);
  RUN(free_keeps_errno);
  RUN(foreign_pointers_are_named);
  RUN(misused_large_blocks_are_named);
  RUN(misuse_aborts_unless_told_otherwise);
  RUN(silence);
  return test_status();
}
