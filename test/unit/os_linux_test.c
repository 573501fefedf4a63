#include <sys/mman.h>
#include <sys/resource.h>

#include "base/bits.h"
#include "os_pages.h"

static void page_size(void) {
  CHECK_EQ(tsl_os_page_bytes(), sysconf(_SC_PAGESIZE));
  CHECK(tsl_is_power_of_two(tsl_os_page_bytes()));
}

static void reserved_is_aligned_and_closed(void) {
  for (size_t log2 = 16; log2 <= 32; log2 += 4) {
    size_t bytes = (size_t)1 << log2;
    char *start = tsl_os_reserve(bytes, bytes);
    CHECK(start != NULL);
    CHECK_EQ((uintptr_t)start & (bytes - 1), 0);
    CHECK(!may_touch(start, false));
    CHECK(!may_touch(start + bytes - 1, false));
    tsl_os_unreserve(start, bytes);
  }
}

static void reserved_apart(void) {
  char *a = reserve(), *b = reserve();
  CHECK(a + BYTES <= b || b + BYTES <= a);
}

static void refused_reservation(void) {
  errno = EDOM;
  CHECK(tsl_os_reserve((size_t)1 << 60, (size_t)1 << 20) == NULL);
  CHECK_EQ(errno, EDOM);
}

static void unreserved_is_unmapped(void) {
  char *start = reserve();
  tsl_os_unreserve(start, BYTES);
  CHECK(madvise(start, tsl_os_page_bytes(), MADV_NORMAL) != 0 && errno == ENOMEM);
}

static void committed_is_zero_and_writable(void) {
  char *start = reserve();
  CHECK(tsl_os_commit(start + BYTES / 2, BYTES / 4));
  check_filled(start + BYTES / 2, BYTES / 4, 0);
  memset(start + BYTES / 2, 1, BYTES / 4);
  CHECK(!may_touch(start + BYTES / 2 - 1, false));
  CHECK(!may_touch(start + BYTES / 2 + BYTES / 4, false));
}

static void borrowed_is_zero_and_goes(void) {
  char *start = tsl_os_borrow(BYTES);
  CHECK(start != NULL);
  check_filled(start, BYTES, 0);
  memset(start, 1, BYTES);
  tsl_os_unreserve(start, BYTES);
  CHECK(!may_touch(start, false));
  errno = EDOM;
  CHECK(tsl_os_borrow(SIZE_MAX / 2) == NULL);
  CHECK_EQ(errno, EDOM);
}

static void purged_is_zero_and_not_resident(void) {
  unsigned char resident;
  char *start = reserve_committed();
  memset(start, 1, BYTES);
  CHECK(tsl_os_purge(start + BYTES / 4, BYTES / 2));
  CHECK_EQ(mincore(start + BYTES / 2, tsl_os_page_bytes(), &resident), 0);
  CHECK_EQ(resident & 1, 0);
  check_filled(start, BYTES / 4, 1);
  check_filled(start + BYTES / 4, BYTES / 2, 0);
  check_filled(start + BYTES / 4 * 3, BYTES / 4, 1);
  memset(start, 2, BYTES);
}

// Systems before Linux 6.13 refuse: then the pages stay as they are.
static void guard_is_set_and_taken_away(void) {
  char *start = reserve_committed();
  memset(start, 1, BYTES);
  size_t page = tsl_os_page_bytes();
  bool guarded = tsl_os_guard(start + page, page, true);
  CHECK_EQ(may_touch(start + page, false), !guarded);
  CHECK(may_touch(start + page - 1, true) && may_touch(start + 2 * page, true));
  CHECK_EQ(tsl_os_guard(start + page, page, false), guarded);
  check_filled(start + page, page, guarded ? 0 : 1);
  memset(start, 2, BYTES);
}

static void errno_survives_refusals(void) {
  char *start = reserve();
  tsl_os_unreserve(start, BYTES);
  errno = EDOM;
  CHECK(!tsl_os_commit(start, BYTES));
  CHECK(!tsl_os_purge(start, BYTES));
  tsl_os_advise_huge(start, BYTES, true);
  tsl_os_name(start, BYTES, "tslab");
  tsl_os_unreserve(start + 1, BYTES);
  CHECK_EQ(errno, EDOM);
}

static void advice_changes_no_content(void) {
  char *start = reserve_committed();
  memset(start, 1, BYTES);
  tsl_os_advise_huge(start, BYTES, true);
  tsl_os_advise_huge(start, BYTES, false);
  tsl_os_name(start, BYTES, "test");
  check_filled(start, BYTES, 1);
}

static void advice_on_use_changes_no_content(void) {
  static const enum tsl_os_use uses[] = {TSL_OS_COLD, TSL_OS_PAGE_OUT, TSL_OS_WILL_NEED};
  static const int advice[] = {20, 21, MADV_WILLNEED};  // MADV_COLD, MADV_PAGEOUT
  char *start = reserve_committed();
  memset(start, 1, BYTES);
  for (int i = 0; i < 3; i++) {
    errno = EDOM;
    bool done = tsl_os_advise_use(start, BYTES / 2, uses[i]);
    CHECK_EQ(errno, EDOM);
    CHECK_EQ(done, madvise(start, BYTES / 2, advice[i]) == 0);
    check_filled(start, BYTES, 1);
  }
  memset(start, 2, BYTES);
  check_filled(start, BYTES, 2);
}

static void refused_advice_on_use(void) {
  char *start = reserve();
  tsl_os_unreserve(start, BYTES);
  errno = EDOM;
  CHECK(!tsl_os_advise_use(start, BYTES, TSL_OS_COLD));
  CHECK(!tsl_os_advise_use(start, BYTES, TSL_OS_PAGE_OUT));
  CHECK(!tsl_os_advise_use(start, BYTES, TSL_OS_WILL_NEED));
  CHECK_EQ(errno, EDOM);
}

static void limit_follows_the_process(void) {
  struct rlimit limit;
  CHECK_EQ(getrlimit(RLIMIT_AS, &limit), 0);
  if (limit.rlim_cur == RLIM_INFINITY) CHECK_EQ(tsl_os_reserve_limit_bytes(), SIZE_MAX);
  limit.rlim_cur = (size_t)1 << 46;
  CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
  CHECK_EQ(tsl_os_reserve_limit_bytes(), (size_t)1 << 45);
}

static void environment(void) {
  CHECK_EQ(setenv("TSLAB_TEST", "value", 1), 0);
  CHECK(strcmp(tsl_os_environment("TSLAB_TEST"), "value") == 0);
  CHECK(tsl_os_environment("TSLAB_TEST_OTHER") == NULL);
}

int main(void) {
  RUN(page_size);
  RUN(reserved_is_aligned_and_closed);
  RUN(reserved_apart);
  RUN(refused_reservation);
  RUN(unreserved_is_unmapped);
  RUN(committed_is_zero_and_writable);
  RUN(borrowed_is_zero_and_goes);
  RUN(purged_is_zero_and_not_resident);
  RUN(guard_is_set_and_taken_away);
  RUN(errno_survives_refusals);
  RUN(advice_changes_no_content);
  RUN(advice_on_use_changes_no_content);
  RUN(refused_advice_on_use);
  if (ADDRESSES_CAN_BE_LIMITED) RUN(limit_follows_the_process);
  RUN(environment);
  return test_status();
}
