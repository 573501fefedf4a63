#include "os/frames.h"

#include <stdbool.h>

#include "base/atomic.h"

enum {
  PLACES_LOG2 = 14,
  PLACES = 1 << PLACES_LOG2,
  MOST_PROBES = 16,  // further calls are not learned
  VARIES = -2,
};

static struct frame {
  uintptr_t call;  // 0: nobody's
  int32_t bytes;   // 0: not known yet
} frames[PLACES];  // [remote] by open addressing; entries stay

// Fibonacci hashing (Knuth, The Art of Computer Programming, volume 3, section 6.4).
static size_t place_of(uintptr_t call) {
  return (size_t)((uint64_t)call * UINT64_C(0x9E3779B97F4A7C15) >> (64 - PLACES_LOG2));
}

static bool claim(struct frame *frame, uintptr_t call) {
  uintptr_t found = 0;
  while (!tsl_cas_relaxed(&frame->call, &found, call)) {
    if (found != 0) return found == call;
  }
  return true;
}

int32_t tsl_frames_find(uintptr_t call) {
  size_t place = place_of(call);
  for (unsigned probe = 0; probe < MOST_PROBES; probe++) {
    const struct frame *frame = &frames[(place + probe) % PLACES];
    uintptr_t found = tsl_load_relaxed(&frame->call);
    if (found == 0) break;
    if (found != call) continue;
    int32_t bytes = tsl_load_relaxed(&frame->bytes);
    return bytes == VARIES ? TSL_FRAMES_UNKNOWN : bytes;
  }
  return TSL_FRAMES_UNKNOWN;
}

void tsl_frames_learn(uintptr_t call, int32_t bytes) {
  size_t place = place_of(call);
  for (unsigned probe = 0; probe < MOST_PROBES; probe++) {
    struct frame *frame = &frames[(place + probe) % PLACES];
    if (!claim(frame, call)) continue;
    int32_t known = tsl_load_relaxed(&frame->bytes);
    if (known != bytes) tsl_store_relaxed(&frame->bytes, known == 0 ? bytes : VARIES);
    return;
  }
}
