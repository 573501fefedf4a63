#include "base/check.h"

#include "base/options.h"
#include "capture.h"

static void misuse(void) { tsl_misuse("the block %d", 5); }
static void assert_false(void) { tsl_assert(1 > 2); }
static void invariant_false(void) { tsl_invariant(1 > 2); }
static void assert_failed(void) { tsl_assert_failed("a == b", "file.c", 12); }

static void misuse_aborts(void) {
  CHECK(capture_aborts(misuse));
  CHECK(strcmp(capture_text, "tslab: the block 5\n") == 0);
}

static void misuse_reports(void) {
  tsl_options.on_error = TSL_ON_ERROR_REPORT;
  CHECK_EQ(capture_child(misuse), 0);
  CHECK(strcmp(capture_text, "tslab: the block 5\n") == 0);
}

static void misuse_is_ignored(void) {
  tsl_options.on_error = TSL_ON_ERROR_IGNORE;
  CHECK_EQ(capture_child(misuse), 0);
  CHECK_EQ(strlen(capture_text), 0);
}

// Our own mistakes stop the program whatever `on_error` says.
static void assertions_follow_the_level(void) {
  tsl_options.on_error = TSL_ON_ERROR_IGNORE;
  CHECK_EQ(capture_aborts(assert_false), TSL_DEBUG >= 1);
  CHECK_EQ(strstr(capture_text, "`1 > 2`") != NULL, TSL_DEBUG >= 1);
  CHECK_EQ(capture_aborts(invariant_false), TSL_DEBUG >= 2);
  CHECK_EQ(strstr(capture_text, "check_test.c:") != NULL, TSL_DEBUG >= 2);
}

static void a_failed_assertion_says_where(void) {
  CHECK(capture_aborts(assert_failed));
  CHECK(strcmp(capture_text,
               "tslab: file.c:12: `a == b` does not hold; this is a bug of the allocator\n") == 0);
}

int main(void) {
  RUN(misuse_aborts);
  RUN(misuse_reports);
  RUN(misuse_is_ignored);
  RUN(assertions_follow_the_level);
  RUN(a_failed_assertion_says_where);
  return test_status();
}
