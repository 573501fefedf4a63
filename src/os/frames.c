#include "os/frames.h"

#include <stdbool.h>

#include "base/atomic.h"

enum {
  FRAME_PLACES_LOG2 = 14,
  FRAME_PLACES = 1 << FRAME_PLACES_LOG2,
  MOST_PROBES = 16,  // a call that finds no place within them is not learned
  VARIES = -2,
};

static struct frame {
  uintptr_t call;        // 0: an empty place
  int32_t bytes;         // 0: not known yet
} frames[FRAME_PLACES];  // [remote] by open addressing; entries stay

// Fibonacci hashing (Knuth, The Art of Computer Programming, volume 3, section 6.4).
static size_t frame_place(uintptr_t call) {
  return (size_t)((uint64_t)call * UINT64_C(0x9E3779B97F4A7C15) >> (64 - FRAME_PLACES_LOG2));
}

static bool frame_claim(struct frame *frame, uintptr_t call) {
  uintptr_t found = 0;
  while (!tsl_cas_relaxed(&frame->call, &found, call)) {
    if (found != 0) return found == call;
  }
  return true;
}

int32_t tsl_frames_find(uintptr_t call) {
  size_t place = frame_place(call);
  for (unsigned probe = 0; probe < MOST_PROBES; probe++) {
    const struct frame *frame = &frames[(place + probe) % FRAME_PLACES];
    uintptr_t found = tsl_load_relaxed(&frame->call);
    if (found == 0) break;
    if (found != call) continue;
    int32_t bytes = tsl_load_relaxed(&frame->bytes);
    return bytes == VARIES ? TSL_FRAMES_UNKNOWN : bytes;
  }
  return TSL_FRAMES_UNKNOWN;
}

void tsl_frames_learn(uintptr_t call, int32_t bytes) {
  size_t place = frame_place(call);
  for (unsigned probe = 0; probe < MOST_PROBES; probe++) {
    struct frame *frame = &frames[(place + probe) % FRAME_PLACES];
    if (!frame_claim(frame, call)) continue;
    int32_t known = tsl_load_relaxed(&frame->bytes);
    if (known != bytes) tsl_store_relaxed(&frame->bytes, known == 0 ? bytes : VARIES);
    return;
  }
}
