#include "base/check.h"

#include <stdlib.h>

#include "base/options.h"
#include "base/warn.h"

void tsl_misuse(const char *format, ...) {
  enum tsl_on_error action = (enum tsl_on_error)tsl_option(on_error);
  if (action == TSL_ON_ERROR_IGNORE) return;
  va_list list;
  va_start(list, format);
  tsl_warn_list(format, list);
  va_end(list);
  if (action == TSL_ON_ERROR_ABORT) abort();
}

void tsl_assert_failed(const char *condition, const char *file, int line) {
  tsl_warn("%s:%d: `%s` does not hold; this is a bug of the allocator", file, line, condition);
  abort();
}
