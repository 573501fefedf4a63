// frames: where on a stack the next return address lies, by the one at hand. Code of a compiler
// without frame pointers has the same distance between the two at each return to the same place, so
// what the unwinder found once need not be looked for again. Where a place has several distances,
// because a function takes from its stack what it needs, none is told.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

enum {
  TSL_FRAMES_UNKNOWN = 0,
  TSL_FRAMES_LAST = -1,  // nobody called who returns there
};

// Bytes from the return address `call` to that of its caller, or one of the above. Any thread.
TSL_HIDDEN int32_t tsl_frames_find(uintptr_t call);

// What the unwinder found: bytes above 0, or TSL_FRAMES_LAST. Any thread.
TSL_HIDDEN void tsl_frames_learn(uintptr_t call, int32_t bytes);
