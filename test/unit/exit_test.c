#include "alloc/exit.h"

#include <string.h>

#include "base/options.h"
#include "capture.h"
#include "tslab.h"

enum { IGNORE, REPORT, FAIL };

static uint64_t wanted;
static bool leaks;

static void end(void) {
  tslab_epoch epoch = tslab_epoch_open("exit", NULL);
  CHECK(tslab_epoch_malloc(epoch, 100) != NULL);
  if (leaks) CHECK_EQ(tslab_epoch_close(epoch).objects, 1);
  tsl_options.leaks_at_exit = wanted;
  exit(5);
}

static void check(uint64_t option, bool is_leaky, int status, bool says) {
  wanted = option;
  leaks = is_leaky;
  int ended = capture_child(end);
  CHECK(WIFEXITED(ended));
  CHECK_EQ(WEXITSTATUS(ended), status);
  CHECK_EQ(strstr(capture_text, "leak: \"") != NULL, says);
}

static void ignored(void) { check(IGNORE, true, 5, false); }
static void reported(void) { check(REPORT, true, 5, true); }
static void failed(void) { check(FAIL, true, 23, true); }
static void without_leaks_the_status_is_the_programs(void) { check(FAIL, false, 5, false); }

int main(void) {
  CHECK(tsl_exit_is_handled());
  RUN(ignored);
  RUN(reported);
  RUN(failed);
  RUN(without_leaks_the_status_is_the_programs);
  return test_status();
}
