#include "report.h"

#include "allocator.h"

#include <stdarg.h>
#include <stdio.h>

void report_open(const char *program) {
  char version[64];
  allocator_version(version, sizeof version);
  printf("result program=%s allocator=%s version=%s", program, allocator_file(), version);
}

void report_count(const char *key, uint64_t value) {
  printf(" %s=%llu", key, (unsigned long long)value);
}

void report_real(const char *key, double value) { printf(" %s=%.4f", key, value); }

void report_text(const char *key, const char *value) { printf(" %s=%s", key, value); }

void report_close(const char *format, ...) {
  putchar('\n');
  va_list list;
  va_start(list, format);
  vprintf(format, list);
  va_end(list);
  putchar('\n');
}
