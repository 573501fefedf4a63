#include "alloc/face.h"

#include "base/options.h"
#include "capture.h"
#include "tslab.h"

// The linker puts these in the place of the face's and of the first copy's.
extern bool __wrap_tsl_face_captures(void);
extern const char *__wrap_tslab_version(void);

static bool captures;
static const char *first = "9.9.9";

bool __wrap_tsl_face_captures(void) { return captures; }
const char *__wrap_tslab_version(void) { return first; }

static const char *said(void (*what)(void)) {
  capture_start();
  what();
  return capture_end();
}

static void who_captures_is_told_nothing(void) {
  captures = true;
  CHECK(said(tsl_face_expect_capture)[0] == '\0');
  captures = false;
  tsl_options.on_error = TSL_ON_ERROR_IGNORE;
  CHECK(said(tsl_face_expect_capture)[0] == '\0');
}

static void who_does_not_is_told_once(void) {
  CHECK(strstr(said(tsl_face_expect_capture), "tslab: scopes hold tslab_* allocations only"));
  CHECK(said(tsl_face_expect_capture)[0] == '\0');
}

static void the_first_copy_has_the_statistics(void) {
  first = tsl_face_version;
  CHECK(said(tsl_face_look_for_first)[0] == '\0');
  CHECK_EQ(tsl_options.stats, 1);
  first = "9.9.9";
  CHECK(strstr(said(tsl_face_look_for_first), "versions 9.9.9 and " TSLAB_VERSION));
  CHECK_EQ(tsl_options.stats, 0);
}

static void a_second_copy_may_be_silent(void) {
  tsl_options.on_error = TSL_ON_ERROR_IGNORE;
  CHECK(said(tsl_face_look_for_first)[0] == '\0');
  CHECK_EQ(tsl_options.stats, 0);
}

int main(void) {
  RUN(who_captures_is_told_nothing);
  RUN(who_does_not_is_told_once);
  RUN(the_first_copy_has_the_statistics);
  RUN(a_second_copy_may_be_silent);
  return test_status();
}
