#include "base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/format.h"
#include "base/options.h"

enum { LINE_BYTES = 512 };

// Whole lines only, so that the lines of several threads do not mix.
static void print_line(const char *format, va_list list) {
  char line[LINE_BYTES] = "tslab: ";
  size_t start = sizeof "tslab: " - 1;
  size_t length = start + tsl_format_list(line + start, sizeof line - start - 1, format, list);
  line[length++] = '\n';
  int saved = errno;
  ssize_t written = write(STDERR_FILENO, line, length);
  (void)written;  // nobody is left to tell
  errno = saved;
}

void tsl_warn(const char *format, ...) {
  va_list list;
  va_start(list, format);
  print_line(format, list);
  va_end(list);
}

void tsl_misuse(const char *format, ...) {
  enum tsl_on_error action = (enum tsl_on_error)tsl_option(on_error);
  if (action == TSL_ON_ERROR_IGNORE) return;
  va_list list;
  va_start(list, format);
  print_line(format, list);
  va_end(list);
  if (action == TSL_ON_ERROR_ABORT) abort();
}

void tsl_assert_failed(const char *condition, const char *file, int line) {
  tsl_warn("%s:%d: `%s` does not hold; this is a bug of the allocator", file, line, condition);
  abort();
}
