#include "tslab.h"

#include "base/options.h"
#include "memory/units.h"
#include "os_fake.h"
#include "pattern.h"
#include "state.h"

enum { MIB = 1 << 20 };

// Impossible sizes, of which the compiler must not know.
static volatile size_t most = SIZE_MAX, half = SIZE_MAX / 2;

static void malloc_and_free(void) {
  errno = EDOM;
  void *block = tslab_malloc(100);
  CHECK(block != NULL);
  tslab_free(block);
  tslab_free(NULL);
  CHECK_EQ(errno, EDOM);
  CHECK(tslab_malloc(0) != tslab_malloc(0));
  CHECK_REFUSED(tslab_malloc(most), ENOMEM);
  state_check();
}

static void calloc_zeroes_and_multiplies(void) {
  char *block = tslab_calloc(100, 50);
  CHECK(pattern_is_zero(block, 5000));
  CHECK_GE(tslab_usable_size(block), 5000);
  CHECK(tslab_calloc(0, 0) != NULL);
  CHECK_REFUSED(tslab_calloc(half, 3), ENOMEM);
}

static void realloc_to_zero_frees(void) {
  void *block = tslab_malloc(3 * MIB);
  size_t free = tsl_units_free();
  CHECK(tslab_realloc(block, 0) == NULL);
  CHECK_EQ(tsl_units_free(), free + 48 + TSL_SECURE);  // with its guard
  void *none = tslab_realloc(NULL, 0);
  CHECK(none != NULL);
  CHECK_EQ(tslab_usable_size(none), TSL_SECURE ? 0 : 16);
}

static void reallocarray_multiplies(void) {
  char *block = tslab_reallocarray(NULL, 10, 10);
  pattern_write(block, 100, 5);
  CHECK_REFUSED(tslab_reallocarray(block, half, 3), ENOMEM);
  CHECK(pattern_is(block, 100, 5, 100));
  block = tslab_reallocarray(block, 1000, 10);
  CHECK(pattern_is(block, 100, 5, 100));
  CHECK_GE(tslab_usable_size(block), 10000);
  CHECK(tslab_reallocarray(block, 5, 0) == NULL);
}

static void aligned_alloc_wants_powers_of_two(void) {
  void *block = tslab_aligned_alloc(256, 1000);
  CHECK(block != NULL);
  CHECK_EQ((uintptr_t)block % 256, 0);
  CHECK(tslab_aligned_alloc(1, 1) != NULL);
  CHECK_REFUSED(tslab_aligned_alloc(0, 1), EINVAL);
  CHECK_REFUSED(tslab_aligned_alloc(48, 1), EINVAL);
  CHECK_REFUSED(tslab_aligned_alloc(most, 1), EINVAL);
  CHECK_REFUSED(tslab_aligned_alloc((size_t)1 << 63, 1), ENOMEM);
}

static void posix_memalign_returns_its_error(void) {
  void *kept = &kept, *block = kept;
  errno = EDOM;
  CHECK_EQ(tslab_posix_memalign(&block, 0, 1), EINVAL);
  CHECK_EQ(tslab_posix_memalign(&block, 4, 1), EINVAL);
  CHECK_EQ(tslab_posix_memalign(&block, 24, 1), EINVAL);
  CHECK_EQ(tslab_posix_memalign(&block, 64, most), ENOMEM);
  os_fake_fail_all(OS_FAKE_COMMIT);
  CHECK_EQ(tslab_posix_memalign(&block, 64, OS_FAKE_MOST_BYTES / 16), ENOMEM);
  os_fake_recover();
  CHECK(block == kept);
  CHECK_EQ(tslab_posix_memalign(&block, 64, 0), 0);
  CHECK(block != kept);
  CHECK_EQ((uintptr_t)block % 64, 0);
  CHECK_EQ(errno, EDOM);
}

static void sizes(void) {
  CHECK_EQ(tslab_usable_size(NULL), 0);
  for (size_t bytes = 0; bytes < 100000; bytes += 97) {
    CHECK_EQ(tslab_usable_size(tslab_malloc(bytes)), tslab_good_size(bytes));
  }
  CHECK_EQ(tslab_good_size(most), 0);
}

static void trim(void) {
  CHECK_EQ(tslab_trim(0), 0);
  tslab_free(tslab_malloc(3 * MIB));
  CHECK_EQ(tslab_trim(3 * MIB), 0);
  CHECK_EQ(tslab_trim(0), 1);
  CHECK_EQ(os_fake.purged_bytes, 3 * MIB);
  CHECK_EQ(tslab_trim(0), 0);
}

static void version(void) { CHECK(strcmp(tslab_version(), TSLAB_VERSION) == 0); }

static void options(void) {
  char value[32];
  CHECK_EQ(tslab_option_set("cache_units", "9"), 0);
  CHECK_EQ(tslab_option_get("cache_units", value, sizeof value), 0);
  CHECK(strcmp(value, "9") == 0);
  CHECK_EQ(tslab_option_get("cache_units", value, 1), ERANGE);
  CHECK_EQ(tslab_option_get("units", value, sizeof value), ENOENT);
  CHECK_EQ(tslab_option_set("units", "9"), ENOENT);
  CHECK_EQ(tslab_option_set("cache_units", "nine"), EINVAL);
  CHECK_EQ(tsl_option(cache_units), 9);
}

static void free_with_a_size(void) {
  static const size_t sizes[] = {0, 1, 24, 1000, 32768, 32769, 3 * MIB};
  errno = EDOM;
  for (int i = 0; i < 7; i++) {
    size_t live = tsl_units_free();
    tslab_free_sized(tslab_malloc(sizes[i]), sizes[i]);
    tslab_free_sized(tslab_calloc(1, sizes[i]), sizes[i]);
    if (i == 6) CHECK_GE(tsl_units_free(), live);
  }
  tslab_free_sized(NULL, 100);
  CHECK_EQ(errno, EDOM);
  state_check();
}

// True: the block has the room. False: it is as it was.
static void check_resize(char *block, size_t size, size_t to, bool fits) {
  size_t usable = tslab_usable_size(block);
  pattern_write(block, size, 7);
  CHECK_EQ(tslab_resize_in_place(block, to), fits);
  if (fits) CHECK_GE(tslab_usable_size(block), to);
  if (!fits) CHECK_EQ(tslab_usable_size(block), usable);
  CHECK(pattern_is(block, size, 7, size < to || !fits ? size : to));
}

static void resizing_in_place(void) {
  char *small = tslab_malloc(100);
  CHECK(!tslab_resize_in_place(NULL, 10));
  CHECK(!tslab_resize_in_place(NULL, 0));
  check_resize(small, 100, 99, true);
  check_resize(small, 99, 100, true);
  check_resize(small, 100, 10, false);
  check_resize(small, 100, 1000, false);
  check_resize(small, 100, MIB, false);
  check_resize(small, 100, most, false);
  tslab_free(small);
  char *large = tslab_malloc(3 * MIB);
  check_resize(large, 3 * MIB, MIB, true);
  CHECK_LE(tslab_usable_size(large), MIB);
  size_t free = tsl_units_free();
  check_resize(large, MIB, 3 * MIB, true);
  CHECK_EQ(tsl_units_free(), free - 32);
  check_resize(large, 3 * MIB, 10, false);
  check_resize(large, 3 * MIB, half, false);
  char *other = tslab_malloc(3 * MIB), *first = other < large ? other : large;
  check_resize(first, 3 * MIB, (size_t)labs(other - large) + MIB, false);
  state_check();
}

int main(void) {
  RUN(malloc_and_free);
  RUN(calloc_zeroes_and_multiplies);
  RUN(realloc_to_zero_frees);
  RUN(reallocarray_multiplies);
  RUN(free_with_a_size);
  RUN(resizing_in_place);
  RUN(aligned_alloc_wants_powers_of_two);
  RUN(posix_memalign_returns_its_error);
  RUN(sizes);
  RUN_UNLESS_SECURE(trim);
  RUN(version);
  RUN(options);
  return test_status();
}
