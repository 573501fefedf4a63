#include "base/warn.h"

#include "capture.h"

static void warn(void) { tsl_warn("%s %d", "words and", 7); }

static void warn_writes_one_line(void) {
  CHECK_EQ(capture_child(warn), 0);
  CHECK(strcmp(capture_text, "tslab: words and 7\n") == 0);
}

static void warn_cuts_long_lines(void) {
  char text[2000];
  memset(text, 'x', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  capture_start();
  tsl_warn("%s", text);
  const char *said = capture_end();
  CHECK_EQ(strlen(said), 512 - 1);
  CHECK_EQ(capture_lines(said), 1);
  CHECK_EQ(said[510], '\n');
}

static void warn_keeps_errno(void) {
  close(STDERR_FILENO);
  errno = EDOM;
  tsl_warn("nobody hears this");
  CHECK_EQ(errno, EDOM);
}

int main(void) {
  RUN(warn_writes_one_line);
  RUN(warn_cuts_long_lines);
  RUN(warn_keeps_errno);
  return test_status();
}
