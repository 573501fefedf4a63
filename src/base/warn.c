#include "base/warn.h"

#include <errno.h>
#include <unistd.h>

#include "base/format.h"

enum { LINE_BYTES = 512 };

// Whole lines only, so that the lines of several threads do not mix.
void tsl_warn_list(const char *format, va_list list) {
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
  tsl_warn_list(format, list);
  va_end(list);
}
