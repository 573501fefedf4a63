// __libc_malloc and its kin: the same allocator under the names that glibc's own parts use.
#include "blocks.h"

static void allocation_test(void) {
  void *block = SYMBOL(__libc_malloc)(100);
  block_check(block, 100);
  block = SYMBOL(__libc_realloc)(block, 5000);
  block_check(block, 5000);
  free(block);
  unsigned char *zeroed = SYMBOL(__libc_calloc)(100, 7);
  block_check(zeroed, 700);
  CHECK(zeroed[0] == 0 && memcmp(zeroed, zeroed + 1, 699) == 0);
  SYMBOL(__libc_free)(zeroed);
  SYMBOL(__libc_cfree)(malloc(10));
  SYMBOL(__libc_free)(NULL);
}

static void aligned_test(void) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  void *aligned = SYMBOL(__libc_memalign)(1024, 100), *posix = NULL;
  CHECK_EQ(SYMBOL(__posix_memalign)(&posix, 2048, 100), 0);
  void *paged = SYMBOL(__libc_valloc)(100), *pages = SYMBOL(__libc_pvalloc)(100);
  CHECK(aligned != NULL && is_aligned(aligned, 1024));
  CHECK(posix != NULL && is_aligned(posix, 2048));
  CHECK(paged != NULL && is_aligned(paged, page));
  CHECK(pages != NULL && is_aligned(pages, page) && malloc_usable_size(pages) >= page);
  free(aligned);
  free(posix);
  free(paged);
  free(pages);
}

static void refusal_test(void) {
  void *untouched = &untouched, *block = untouched;
  CHECK_REFUSED(SYMBOL(__libc_malloc)(SIZE_MAX), ENOMEM);
  CHECK_REFUSED(SYMBOL(__libc_calloc)(SIZE_MAX, 2), ENOMEM);
  CHECK_REFUSED(SYMBOL(__libc_memalign)(64, SIZE_MAX - 100), ENOMEM);
  errno = EXDEV;
  CHECK_EQ(SYMBOL(__posix_memalign)(&block, 24, 100), EINVAL);
  CHECK_EQ(errno, EXDEV);
  CHECK(block == untouched);
}

int main(void) {
  allocation_test();
  aligned_test();
  refusal_test();
  return 0;
}
