// Samples of memory over time, kept outside the allocator under test and written at the end.
#ifndef BENCH_CURVE_H
#define BENCH_CURVE_H

#include <stdint.h>

#define CURVE_STEP_NS 10000000u
#define CURVE_MAX 65536u

typedef struct curve_sample {
  uint64_t ns;
  uint64_t resident_bytes;
  uint64_t live_bytes;
} curve_sample;

typedef struct curve {
  const char *path;  // NULL: nobody wants it
  uint64_t start_ns;
  uint64_t due_ns;
  uint64_t before;  // resident bytes that are not the allocator's
  uint32_t count;
  curve_sample *samples;
} curve;

void curve_open(curve *c, const char *path, uint64_t before);

// Takes a sample when it is time. To be called often.
void curve_tick(curve *c, uint64_t live_bytes);

// Writes `ms,rss_bytes,live_bytes`. Ends the program when the file cannot be written.
void curve_write(const curve *c);

#endif
