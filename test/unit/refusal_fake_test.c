#include "observe/refusal.h"

#include <string.h>

#include "capture.h"
#include "epochs.h"
#include "tell/sample.h"
#include "tellers.h"
#include "upkeep/reports.h"
#include "upkeep/tick.h"

enum { HELD = 1 << 20 };

// What is said of memory that the system refuses to a program in which an epoch and the default one
// hold some.
static const char *refuse(size_t bytes) {
  open_homes();
  os_fake.now_ms++;
  tsl_report_tick(mine->home);
  tsl_home_follow_samples(mine->home);
  tslab_epoch outer = EPOCHS_OPEN(.first_cell_bytes = TSLAB_NO_CELLS);
  CHECK(tslab_epoch_malloc(outer, HELD) != NULL);
  tslab_epoch inner = EPOCHS_OPEN(.parent = outer, .first_cell_bytes = TSLAB_NO_CELLS);
  CHECK(tslab_epoch_malloc(inner, HELD) != NULL);
  for (unsigned i = 0; i < 1000; i++) CHECK(tsl_fast_malloc(4000) != NULL);
  CHECK(tsl_fast_malloc(HELD) != NULL);
  os_fake_fail_all(OS_FAKE_COMMIT);
  capture_start();
  void *block = NULL;
  for (unsigned i = 0; i < 2; i++) block = tsl_fast_malloc(bytes);
  const char *said = capture_end();
  CHECK(block == NULL);
  return said;
}

static unsigned count(const char *text, const char *part) {
  unsigned found = 0;
  while ((text = strstr(text, part)) != NULL) text++, found++;
  return found;
}

static void it_is_said_once_who_holds_memory(void) {
  tsl_options.verbose = 1;
  const char *said = refuse((size_t)1 << 27);
  CHECK_EQ(count(said, "the system has no memory for 134217728 bytes"), 1);
  CHECK_EQ(count(said, "3 large blocks have 3145728 bytes"), 1);
  CHECK_EQ(count(said, "epochs \"test\" hold 2097152 bytes"), 1);  // each counted once
  CHECK_EQ(count(said, "slabs of 4096-byte blocks have "), 1);
  CHECK_EQ(count(said, "by samples about "), 0);
}

// Large blocks of this size are always sampled. The blocks of 4,000 bytes come to more than each.
static void the_call_stacks_of_samples_are_said(void) {
  tsl_options.verbose = 1;
  tsl_options.sample_bytes = 4096;
  const char *said = refuse((size_t)1 << 27);
  CHECK_EQ(count(said, "by samples about "), 3);
  CHECK_EQ(count(said, "by samples about 1048576 bytes were allocated by 0x"), 2);
}

static void nothing_is_said_unless_asked_for(void) { CHECK_EQ(strlen(refuse((size_t)1 << 27)), 0); }

static void a_limit_of_an_epoch_is_no_refusal_by_the_system(void) {
  open_homes();
  tsl_options.verbose = 1;
  tslab_epoch epoch = EPOCHS_OPEN(.hard_limit_bytes = 4096, .first_cell_bytes = TSLAB_NO_CELLS);
  capture_start();
  void *block = tslab_epoch_malloc(epoch, 100);
  const char *said = capture_end();
  CHECK(block == NULL);
  CHECK_EQ(count(said, "the system has no memory"), 0);
}

int main(void) {
  RUN(it_is_said_once_who_holds_memory);
  RUN_UNLESS_SECURE(the_call_stacks_of_samples_are_said);
  RUN(nothing_is_said_unless_asked_for);
  RUN(a_limit_of_an_epoch_is_no_refusal_by_the_system);
  return test_status();
}
