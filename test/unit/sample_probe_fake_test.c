// What the probes of samples tell: sample.c, compiled with a listener in their place.
#include <math.h>

#include "base/probe.h"
#undef TSL_PROBE_SAMPLED
#undef TSL_PROBE_ENDED
#define TSL_PROBE_SAMPLED(block, bytes, weight) listen_sampled(block, bytes, weight)
#define TSL_PROBE_ENDED(block) listen_ended(block)

#include <stddef.h>
#include <stdint.h>

static void listen_sampled(const void *block, size_t bytes, uint64_t weight);
static void listen_ended(uintptr_t block);

#include "tell/sample.c"  // NOLINT(bugprone-suspicious-include): the test is about its inside

#include "alloc/malloc.h"
#include "epochs.h"
#include "homes.h"
#include "upkeep/reports.h"
#include "upkeep/tick.h"

enum { LISTENED_MEAN = 4096, RATE = 1000, FASTER = 10, SECONDS = 5 };

static struct {
  uint64_t samples, bytes, weight, ends;
  uintptr_t last;
} heard;

static void listen_sampled(const void *block, size_t bytes, uint64_t weight) {
  heard.samples++;
  heard.bytes += bytes;
  heard.weight += weight;
  heard.last = (uintptr_t)block;
}

static void listen_ended(uintptr_t block) {
  heard.ends++;
  if (block == heard.last) heard.last = 0;
}

static void open_home(void) {
  static struct tsl_heap *mine, *other;
  tsl_options.sample_bytes = LISTENED_MEAN;
  homes_open((size_t)1 << 30, &mine, &other);
  os_fake.now_ms++;
  tsl_report_tick(mine->home);
  tsl_home_follow_samples(mine->home);
}

static void a_probe_names_its_block(void) {
  open_home();
  void *block = tsl_fast_malloc(1 << 20);
  CHECK_EQ(heard.samples, 1);
  CHECK_EQ(heard.last, (uintptr_t)block);
  CHECK_EQ(heard.bytes, 1 << 20);
  CHECK_EQ(heard.weight, 1 << 20);
  tsl_fast_free(block);
  CHECK_EQ(heard.ends, 1);
  CHECK_EQ(heard.last, 0);
}

// `most` samples a second, or all: a listener who adds up the weights learns what was allocated.
static void weights_are_the_bytes_allocated(size_t bytes, unsigned a_ms, uint64_t most) {
  open_home();
  tsl_options.sample_rate = most;
  for (unsigned ms = 0; ms < SECONDS * 1000; ms++) {
    os_fake.now_ms++;
    for (unsigned i = 0; i < a_ms; i++) tsl_fast_free(tsl_fast_malloc(bytes));
  }
  double allocated = (double)SECONDS * 1000 * a_ms * (double)tslab_good_size(bytes);
  CHECK_GE(heard.samples, 1000);
  CHECK_EQ(heard.samples, heard.ends);
  CHECK(fabs((double)heard.weight - allocated) <= 0.1 * allocated);
}

static void weights_of_all_samples(void) { weights_are_the_bytes_allocated(512, 32, 0); }
static void weights_of_bounded_samples(void) {
  weights_are_the_bytes_allocated(512, FASTER * LISTENED_MEAN / 512, RATE);
}
static void weights_of_bounded_samples_of_large_blocks(void) {
  weights_are_the_bytes_allocated(FASTER * LISTENED_MEAN, 1, RATE);
}

int main(void) {
  RUN_UNLESS_SECURE(a_probe_names_its_block);
  RUN_UNLESS_SECURE(weights_of_all_samples);
  RUN_UNLESS_SECURE(weights_of_bounded_samples);
  RUN_UNLESS_SECURE(weights_of_bounded_samples_of_large_blocks);
  return test_status();
}
