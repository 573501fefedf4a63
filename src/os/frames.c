#include "os/frames.h"

#include <stdbool.h>

#include "base/atomic.h"
#include "base/hash.h"

// Each table is four times as large as the one before. A call gets its place in the first one that
// has a free one for it, so that pages are touched as they fill.
enum {
  FRAME_TABLES = 4,
  FEWEST_PLACES_LOG2 = 8,
  MOST_PROBES = 8,  // in each table; a call that finds no place in any is not learned
  VARIES = -2,
};

// The places of so many tables.
#define FRAME_PLACES(tables) \
  (((1u << (FEWEST_PLACES_LOG2 + 2 * (tables))) - (1u << FEWEST_PLACES_LOG2)) / 3)

static struct frame {
  uintptr_t call;                      // 0: an empty place
  int32_t bytes;                       // 0: not known yet
} frames[FRAME_PLACES(FRAME_TABLES)];  // [remote] by open addressing; entries stay

static struct frame *frame_at(uintptr_t call, unsigned table, unsigned probe) {
  unsigned log2 = FEWEST_PLACES_LOG2 + 2 * table;
  size_t place = (size_t)tsl_hash_place(call, log2);
  return &frames[FRAME_PLACES(table) + ((place + probe) & ((1u << log2) - 1))];
}

static bool frame_claim(struct frame *frame, uintptr_t call) {
  uintptr_t found = 0;
  while (!tsl_cas_relaxed(&frame->call, &found, call)) {
    if (found != 0) return found == call;
  }
  return true;
}

// The call's place; NULL where it has none. With `claims` it gets one.
static struct frame *frame_find(uintptr_t call, bool claims) {
  for (unsigned probe = 0; probe < FRAME_TABLES * MOST_PROBES; probe++) {
    struct frame *frame = frame_at(call, probe / MOST_PROBES, probe % MOST_PROBES);
    uintptr_t found = tsl_load_relaxed(&frame->call);
    if (found == 0 && !claims) return NULL;
    if (found == call || (found == 0 && frame_claim(frame, call))) return frame;
  }
  return NULL;
}

int32_t tsl_frames_find(uintptr_t call) {
  const struct frame *frame = frame_find(call, false);
  int32_t bytes = frame == NULL ? TSL_FRAMES_UNKNOWN : tsl_load_relaxed(&frame->bytes);
  return bytes == VARIES ? TSL_FRAMES_UNKNOWN : bytes;
}

void tsl_frames_learn(uintptr_t call, int32_t bytes) {
  struct frame *frame = frame_find(call, true);
  int32_t known = frame == NULL ? bytes : tsl_load_relaxed(&frame->bytes);
  if (known != bytes) tsl_store_relaxed(&frame->bytes, known == 0 ? bytes : VARIES);
}
