// What a program prints: one line `result key=value ...` for the runner, then one line for people.
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include <stdint.h>

// Starts the line with the program's name and the allocator that malloc really resolves to, with
// its version.
void report_open(const char *program);
void report_count(const char *key, uint64_t value);
void report_real(const char *key, double value);
void report_text(const char *key, const char *value);
// Ends the line and prints the one for people.
__attribute__((format(printf, 1, 2))) void report_close(const char *format, ...);

static inline double report_million_per_s(uint64_t count, uint64_t ns) {
  return (double)count * 1e3 / (double)ns;
}

#endif
