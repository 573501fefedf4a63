// The command line of synthetic_bench: a pattern, and what is to differ from it.
#ifndef BENCH_SYNTHETIC_SETTINGS_H
#define BENCH_SYNTHETIC_SETTINGS_H

#include "common/args.h"
#include "synthetic/pattern.h"

#include <stdbool.h>

typedef struct settings {
  pattern pattern;
  bool has_epochs;
  uint32_t duration_s;
  unsigned threads;
  double rate_factor;      // 0: as fast as possible
  uint32_t rss_sample_ms;  // 0: no samples
  uint32_t hold_s;         // 0: ends at once
  const char *csv_path;    // NULL: nobody wants it
  const char *hgrm_path;   // NULL: nobody wants it
} settings;

settings settings_take(int argc, char **argv);

#endif
