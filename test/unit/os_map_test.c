#include <sys/resource.h>

#include "base/bits.h"
#include "os_pages.h"

// ThreadSanitizer has a use of its own for most addresses.
#if defined(__SANITIZE_THREAD__)
enum { PLACES_CAN_BE_MAPPED = 0 };
#else
enum { PLACES_CAN_BE_MAPPED = 1 };
#endif

// An address at which so many bytes can be mapped.
static char *free_place(void) {
  char *start = reserve();
  tsl_os_unreserve(start, BYTES);
  return start;
}

static void places_are_aligned_and_differ(void) {
  size_t bytes;
  uintptr_t ones = 0, zeros = 0, place;
  for (unsigned i = 0; i < 64; i++) {
    bytes = (size_t)4 << 40;
    place = tsl_os_place(&bytes, i % 2);
    CHECK_EQ(bytes, (size_t)4 << 40);
    CHECK_EQ(place & (bytes - 1), 0);
    CHECK(place != 0 && place + bytes <= (uintptr_t)1 << 47);
    ones |= place, zeros |= ~place;
  }
  CHECK_GE(tsl_bit_count(ones & zeros), 3);
}

static void later_places_are_for_narrower_spaces(void) {
  uintptr_t end = UINTPTR_MAX;
  unsigned attempt = 0;
  for (;; attempt++) {
    size_t bytes = (size_t)100 << 40;
    uintptr_t place = tsl_os_place(&bytes, attempt);
    if (place == 0) break;
    CHECK_GE(bytes, (size_t)1 << 31);
    CHECK_EQ(place & (bytes - 1), 0);
    CHECK(attempt % 2 == 1 || place + bytes <= end);
    if (attempt % 2 == 1) end = place;
  }
  CHECK_EQ(attempt, 8);
  CHECK_LE(end, (uintptr_t)1 << 34);
}

// Nothing of this program's lies at the first place.
static void places_can_be_mapped(void) {
  size_t bytes = (size_t)4 << 40;
  char *start = (char *)tsl_os_place(&bytes, 0);
  for (size_t at = 0; at < bytes; at += bytes / 16) {
    CHECK_EQ(tsl_os_map(start + at, 65536), TSL_OS_MAPPED);
    memset(start + at, 1, 65536);
  }
}

static void mapped_is_zero_and_writable(void) {
  char *start = free_place();
  errno = EDOM;
  CHECK_EQ(tsl_os_map(start, BYTES / 4), TSL_OS_MAPPED);
  check_filled(start, BYTES / 4, 0);
  memset(start, 1, BYTES / 4);
  CHECK_EQ(tsl_os_map_more(start + BYTES / 4, BYTES / 4), TSL_OS_MAPPED);
  check_filled(start + BYTES / 4, BYTES / 4, 0);
  memset(start, 1, BYTES / 2);
  CHECK(!may_touch(start + BYTES / 2, false));
  CHECK_EQ(errno, EDOM);
}

// How many mappings lie in the range.
static unsigned mappings_in(const char *from, size_t bytes) {
  char line[512];
  unsigned found = 0;
  FILE *file = fopen("/proc/self/maps", "r");
  CHECK(file != NULL);
  while (fgets(line, sizeof line, file) != NULL) {
    uintptr_t start = strtoull(line, NULL, 16);
    found += start >= (uintptr_t)from && start < (uintptr_t)from + bytes;
  }
  fclose(file);
  return found;
}

static void mapped_more_is_one_mapping(void) {
  char *start = free_place();
  size_t step = BYTES / 16;
  CHECK_EQ(tsl_os_map(start, step), TSL_OS_MAPPED);
  tsl_os_name(start, step, "test");
  tsl_os_advise_huge(start, step, false);
  for (size_t at = step; at < BYTES; at += step)
    CHECK_EQ(tsl_os_map_more(start + at, step), TSL_OS_MAPPED);
  CHECK_EQ(mappings_in(start, BYTES), 1);
}

static size_t address_pages(void) {
  char text[64];
  tsl_os_read_file("/proc/self/statm", text, sizeof text - 1);
  return strtoull(text, NULL, 10);
}

static void mapped_pages_are_not_replaced(void) {
  char *start = free_place();
  size_t page = tsl_os_page_bytes();
  CHECK_EQ(tsl_os_map(start + BYTES / 2, page), TSL_OS_MAPPED);
  memset(start + BYTES / 2, 1, page);
  CHECK_EQ(tsl_os_map(start, BYTES / 4), TSL_OS_MAPPED);
  size_t before = address_pages();
  errno = EDOM;
  CHECK_EQ(tsl_os_map(start + BYTES / 2, page), TSL_OS_OCCUPIED);
  CHECK_EQ(address_pages(), before);
  CHECK_EQ(tsl_os_map(start + BYTES / 4, BYTES / 2), TSL_OS_OCCUPIED);
  CHECK_EQ(tsl_os_map_more(start + BYTES / 4, BYTES / 2), TSL_OS_OCCUPIED);
  CHECK_EQ(errno, EDOM);
  CHECK_EQ(tsl_os_map_more(start + BYTES / 4, BYTES / 8), TSL_OS_MAPPED);
  CHECK_EQ(mappings_in(start, BYTES), 2);
  check_filled(start + BYTES / 2, page, 1);
}

// As after a program's change to the pages before: then it is a mapping of its own.
static void mapped_more_behind_other_pages(void) {
  char *start = free_place();
  size_t page = tsl_os_page_bytes();
  CHECK_EQ(tsl_os_map(start, 2 * page), TSL_OS_MAPPED);
  tsl_os_unreserve(start + page, page);
  CHECK_EQ(tsl_os_map_more(start + 2 * page, page), TSL_OS_MAPPED);
  memset(start + 2 * page, 1, page);
}

static void more_than_the_limit_is_refused(void) {
  char *start = free_place();
  CHECK_EQ(tsl_os_map(start, BYTES / 2), TSL_OS_MAPPED);
  struct rlimit limit = {BYTES, BYTES};
  CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
  errno = EDOM;
  CHECK_EQ(tsl_os_map_more(start + BYTES / 2, BYTES / 2), TSL_OS_REFUSED);
  CHECK_EQ(tsl_os_map(start + BYTES / 2, BYTES / 2), TSL_OS_REFUSED);
  CHECK_EQ(errno, EDOM);
}

int main(void) {
  RUN(places_are_aligned_and_differ);
  RUN(later_places_are_for_narrower_spaces);
  if (PLACES_CAN_BE_MAPPED) RUN(places_can_be_mapped);
  RUN(mapped_is_zero_and_writable);
  RUN(mapped_more_is_one_mapping);
  RUN(mapped_pages_are_not_replaced);
  RUN(mapped_more_behind_other_pages);
  if (ADDRESSES_CAN_BE_LIMITED) RUN(more_than_the_limit_is_refused);
  return test_status();
}
