// The tslab_* interface of libtslab.so, in a program whose malloc stays the C library's, or is ours
// by preload.
//
// With the argument "alone" it must leave malloc alone; with "preloaded" both names must be one
// allocator.
#include <tslab.h>

#include "blocks.h"

static void allocation_test(void) {
  for (size_t size = 0; size <= 8 * MIB; size = size_next(size)) {
    unsigned char *block = tslab_malloc(size);
    CHECK_THAT(block != NULL && is_aligned(block, 16), "size %zu gave %p", size, (void *)block);
    CHECK_GE(tslab_usable_size(block), size);
    CHECK_EQ(tslab_good_size(size), tslab_usable_size(block));
    pattern_fill(block, size, 1);
    block = tslab_realloc(block, size + size / 2 + 1);
    pattern_check(block, size, 1);
    tslab_free(block);
  }
}

static void zeroed_test(void) {
  for (size_t size = 1; size <= 2 * MIB; size = size_next(size)) {
    void *dirty = tslab_malloc(size);
    memset(dirty, 0xa5, size);
    tslab_free(dirty);
    unsigned char *block = tslab_calloc(1, size);
    CHECK_THAT(block[0] == 0 && memcmp(block, block + 1, size - 1) == 0, "size %zu", size);
    tslab_free(block);
  }
}

static void aligned_test(void) {
  for (size_t alignment = 8; alignment <= 64 * MIB; alignment *= 2) {
    void *block = tslab_aligned_alloc(alignment, 100), *posix = NULL;
    CHECK_EQ(tslab_posix_memalign(&posix, alignment, 100), 0);
    CHECK(block != NULL && is_aligned(block, alignment));
    CHECK(posix != NULL && is_aligned(posix, alignment));
    tslab_free(block);
    tslab_free(posix);
  }
}

static void refusal_test(void) {
  void *untouched = &untouched, *block = untouched;
  const volatile size_t impossible = SIZE_IMPOSSIBLE, half = SIZE_MAX / 2 + 1;
  CHECK_REFUSED(tslab_malloc(impossible), ENOMEM);
  CHECK_REFUSED(tslab_calloc(half, 2), ENOMEM);
  CHECK_REFUSED(tslab_realloc(NULL, impossible), ENOMEM);
  CHECK_REFUSED(tslab_reallocarray(NULL, half, 2), ENOMEM);
  CHECK_REFUSED(tslab_aligned_alloc(64, impossible), ENOMEM);
  CHECK_REFUSED(tslab_aligned_alloc(48, 100), EINVAL);
  CHECK_EQ(tslab_posix_memalign(&block, 3, 100), EINVAL);
  CHECK_EQ(tslab_posix_memalign(&block, 64, impossible), ENOMEM);
  CHECK(block == untouched);
}

static void small_things_test(void) {
  errno = EXDEV;
  tslab_free(NULL);
  CHECK_EQ(errno, EXDEV);
  CHECK_EQ(tslab_usable_size(NULL), 0);
  CHECK_THAT(strcmp(tslab_version(), TSLAB_VERSION) == 0, "%s", tslab_version());
}

// What a trim says, the system can see: memory that was free is resident no more.
static void trim_test(void) {
  void *block = tslab_malloc(16 * MIB);
  CHECK(block != NULL);
  memset(block, 1, 16 * MIB);
  tslab_trim(0);
  size_t resident = process_resident_bytes();
  tslab_free(block);
  CHECK_EQ(tslab_trim(0), 1);
  CHECK_LE(process_resident_bytes() + 15 * MIB, resident);
  CHECK_EQ(tslab_trim(0), 0);
}

static const char *library_of(void *function) {
  Dl_info info;
  CHECK(dladdr(function, &info) != 0);
  return info.dli_fname;
}

// Linking the library must not change what malloc means.
static void alone_test(void) {
  CHECK(!tslab_captures_malloc());
  const char *library = library_of(dlsym(RTLD_DEFAULT, "malloc"));
  CHECK_THAT(strstr(library, "tslab") == NULL, "malloc comes from %s", library);
  void *ours = tslab_malloc(100), *theirs = malloc(100);
  CHECK(ours != NULL && theirs != NULL);
  CHECK_EQ(tslab_usable_size(ours), tslab_good_size(100));
  tslab_free(ours);
  free(theirs);
}

static void preloaded_test(void) {
  CHECK(tslab_captures_malloc());
  const char *library = library_of(dlsym(RTLD_DEFAULT, "tslab_malloc"));
  CHECK_THAT(strstr(library, "tslab-preload") != NULL, "tslab_malloc comes from %s", library);
  for (size_t size = 0; size <= 64 * MIB; size = size * 2 + 1) {
    void *first = tslab_malloc(size), *second = malloc(size);
    CHECK(first != NULL && second != NULL);
    CHECK_EQ(malloc_usable_size(first), tslab_usable_size(second));
    first = realloc(first, size + 1);
    second = tslab_realloc(second, size + 1);
    CHECK_GE(tslab_usable_size(first), size + 1);
    CHECK_GE(malloc_usable_size(second), size + 1);
    tslab_free(first);
    free(second);
  }
}

int main(int argc, char **argv) {
  CHECK_EQ(argc, 2);
  allocation_test();
  zeroed_test();
  aligned_test();
  refusal_test();
  small_things_test();
  trim_test();
  bool is_alone = strcmp(argv[1], "alone") == 0;
  CHECK(is_alone || strcmp(argv[1], "preloaded") == 0);
  if (is_alone) alone_test();
  if (!is_alone) preloaded_test();
  return 0;
}
