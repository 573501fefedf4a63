#include "alloc/helper.h"

#include <sys/resource.h>

#include "alloc/malloc.h"
#include "memory/purge.h"
#include "memory/segment.h"
#include "os_fake.h"
#include "state.h"

enum { MIB = 1 << 20, PATIENCE_MS = 5000 };

// A sanitizer needs addresses when a thread begins.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { ADDRESSES_CAN_BE_LIMITED = 0 };
#else
enum { ADDRESSES_CAN_BE_LIMITED = 1 };
#endif

static uint64_t naps(void) { return tsl_load_relaxed(&os_fake.calls[OS_FAKE_SLEEP]); }

static bool helper_naps(void) {
  uint64_t before = naps();
  for (int ms = 0; naps() == before && ms < PATIENCE_MS; ms++) usleep(1000);
  return naps() != before;
}

// Waits until the helper has brought the dirty units down to `units`.
static bool dirty_sinks_to(size_t units) {
  for (int ms = 0; tsl_units_dirty() > units && ms < PATIENCE_MS; ms++) usleep(1000);
  return tsl_units_dirty() <= units;
}

// Waits for the helper's end: a program that ends with threads is waited for by sanitizers.
static void end_helper(void) {
  tsl_store_relaxed(&tsl_options.helper, 0);
  uint64_t before;
  do {
    before = naps();
    usleep(20000);
  } while (naps() != before);
}

static void none_unless_asked_for(void) {
  tsl_fast_free(tsl_fast_malloc(3 * MIB));
  usleep(20000);
  CHECK_EQ(naps(), 0);
}

static void gives_back_while_the_program_idles(void) {
  tsl_options.helper = 1;
  tsl_options.purge_delay_ms = 5;
  void *block = tsl_fast_malloc(8 * MIB);
  (void)tsl_fast_malloc(100);
  tsl_fast_free(block);
  CHECK(helper_naps());
  CHECK(dirty_sinks_to(0));
  end_helper();
}

static void purges_at_once_when_told(void) {
  tsl_options.helper = 1;
  tsl_options.purge_delay_ms = 3600000;
  void *block = tsl_fast_malloc(8 * MIB);
  (void)tsl_fast_malloc(100);
  CHECK(helper_naps());
  tsl_fast_free(block);
  CHECK_GE(tsl_units_dirty(), 8 * MIB >> TSL_UNIT_LOG2);
  tsl_purge_now();
  CHECK(dirty_sinks_to(0));
  CHECK_EQ(os_fake.calls[OS_FAKE_WAKE], 1);
  end_helper();
}

static void ends_and_starts_by_option(void) {
  tsl_options.helper = 1;
  tsl_options.purge_delay_ms = 1;
  (void)tsl_fast_malloc(100);
  CHECK(helper_naps());
  end_helper();
  tsl_store_relaxed(&tsl_options.helper, 1);
  tsl_helper_ensure();
  tsl_helper_ensure();
  CHECK(helper_naps());
  end_helper();
}

static void starting_keeps_errno(void) {
  tsl_options.helper = 1;
  errno = EDOM;
  (void)tsl_fast_malloc(100);
  CHECK_EQ(errno, EDOM);
  end_helper();
}

static void failing_to_start_keeps_errno(void) {
  struct rlimit limit = {MIB, MIB};
  tsl_options.helper = 1;
  CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
  errno = EDOM;
  tsl_helper_ensure();
  CHECK_EQ(errno, EDOM);
  usleep(20000);
  CHECK_EQ(naps(), 0);
}

static void a_child_starts_its_own(void) {
  tsl_options.helper = 1;
  tsl_options.purge_delay_ms = 1;
  (void)tsl_fast_malloc(100);
  CHECK(helper_naps());
  tsl_helper_after_fork();
  tsl_helper_ensure();
  CHECK(helper_naps());
  end_helper();
}

int main(void) {
  RUN(none_unless_asked_for);
  RUN(gives_back_while_the_program_idles);
  RUN(purges_at_once_when_told);
  RUN(ends_and_starts_by_option);
  RUN(starting_keeps_errno);
  if (ADDRESSES_CAN_BE_LIMITED) RUN(failing_to_start_keeps_errno);
  RUN(a_child_starts_its_own);
  return test_status();
}
